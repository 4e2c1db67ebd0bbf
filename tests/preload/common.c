// SPDX-License-Identifier: GPL-3.0-or-later
#include "common.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME(index, constant, name) #name,
const char *const function_names[FUNCTIONS] = { ALLOCATOR_FUNCTIONS(NAME) };

/* Not thread-local: one more module with TLS makes the C library free one NULL more for every stack
 * that pthread_create reuses. */
#define NESTED_SLOTS  1024
#define NESTED_WINDOW 32

static struct {
	_Atomic uintptr_t sp; /* 0 where free */
	uintptr_t pointer;
	uintptr_t size;
} nested[NESTED_SLOTS];

/* By syscalls: the C library's own may be what called. */
_Noreturn void die(const char *why)
{
	syscall(SYS_write, 2, library_name, strlen(library_name));
	syscall(SYS_write, 2, ": ", 2);
	syscall(SYS_write, 2, why, strlen(why));
	syscall(SYS_write, 2, "\n", 1);
	for (;;)
		syscall(SYS_exit_group, 99);
}

#ifdef TRUTH_WRAP

/* In a static program __libc_stack_end is something else, and environ is set from the start. */
static char **first_variables(void)
{
	return environ;
}

#define DECLARE(index, constant, name) void __real_##name(void);
ALLOCATING_FUNCTIONS(DECLARE)

void *real_function(enum function f)
{
#define REAL(index, constant, name) (void *)__real_##name,
	static void *const real[] = { ALLOCATING_FUNCTIONS(REAL) };

	return real[f];
}

#else

/* Set by ld.so to where the kernel put argc; the first call can come before environ is set, and
 * the program may change environ later. */
extern void *__libc_stack_end;

static char **first_variables(void)
{
	char **stack = __libc_stack_end;

	return stack + 1 + *(long *)stack + 1;
}

void *real_function(enum function f)
{
	static void *_Atomic real[FUNCTIONS];
	static bool resolving, resolved;

	/* Always by the only thread: to start another one allocates. */
	if (!resolved) {
		if (resolving)
			die("dlsym allocates in this C library");
		resolving = true;
		for (int i = 0; i < FUNCTIONS; i++) {
			void *function = dlsym(RTLD_NEXT, function_names[i]);

			if (!function)
				die("this C library lacks a function of the allocator");
			atomic_store(&real[i], function);
		}
		resolved = true;
	}
	return atomic_load(&real[f]);
}

#endif

const char *first_environment(const char *name)
{
	size_t length = strlen(name);

	for (char **env = first_variables(); *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

/* Numbers are long: of a variable argument that goes by the stack, all 64 bits count. */
void *map_anonymous(size_t size)
{
	void *memory = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);

	if (memory == MAP_FAILED)
		die("cannot map memory");
	return memory;
}

void *map_output(const char *path, size_t size)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	void *memory;

	if (fd < 0)
		die("cannot open the file in ALLOCPROF_COUNTER");
	if (syscall(SYS_lseek, fd, 0L, SEEK_END) < (long)size)
		die("the file in ALLOCPROF_COUNTER is too short");
	memory = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	if (memory == MAP_FAILED)
		die("cannot map the file in ALLOCPROF_COUNTER");
	syscall(SYS_close, fd);
	return memory;
}

size_t requested_bytes(enum function f, uintptr_t a, uintptr_t b, uintptr_t c, bool *overflow)
{
	size_t bytes = 0;

	*overflow = false;
	switch (f) {
	case MALLOC:
	case VALLOC:
	case PVALLOC:
		return a;
	case CALLOC:
		*overflow = __builtin_mul_overflow(a, b, &bytes);
		break;
	case REALLOC:
	case ALIGNED_ALLOC:
	case MEMALIGN:
		return b;
	case REALLOCARRAY:
		*overflow = __builtin_mul_overflow(b, c, &bytes);
		break;
	case POSIX_MEMALIGN:
		return c;
	case FREE:
	case FUNCTIONS:
		break;
	}
	return *overflow ? 0 : bytes;
}

static size_t first_slot(uintptr_t sp)
{
	return (sp * 0x9e3779b97f4a7c15ull) >> 32;
}

void nested__expect(uintptr_t pointer, uintptr_t size, uintptr_t sp)
{
	for (size_t i = 0; i < NESTED_WINDOW; i++) {
		size_t slot = (first_slot(sp) + i) % NESTED_SLOTS;
		uintptr_t vacant = 0;

		if (!atomic_compare_exchange_strong(&nested[slot].sp, &vacant, sp))
			continue;
		nested[slot].pointer = pointer;
		nested[slot].size = size;
		return;
	}
	die("too many calls of reallocarray at once");
}

bool nested__take(uintptr_t pointer, uintptr_t size, uintptr_t sp)
{
	for (size_t i = 0; i < NESTED_WINDOW; i++) {
		size_t slot = (first_slot(sp) + i) % NESTED_SLOTS;

		if (atomic_load(&nested[slot].sp) != sp || nested[slot].pointer != pointer ||
		    nested[slot].size != size)
			continue;
		atomic_store(&nested[slot].sp, 0);
		return true;
	}
	return false;
}
