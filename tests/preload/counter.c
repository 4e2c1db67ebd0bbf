// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The independent truth for the live tests: counts the application's calls of the C library's
 * allocator and touches nothing else.
 *
 * Every stub counts and then jumps to the real function with the caller's registers, stack pointer
 * and return address. Whoever looks at the real function therefore sees the calls as if the counter
 * were not there, and nothing has to be undone when a call never returns (longjmp, thread
 * cancellation, exec, death by a signal).
 *
 * The counters are a file mapped shared by every process that has ALLOCPROF_COUNTER=FILE in its
 * first environment: fork, vfork, exec and _exit need no handling, and nothing is ever flushed.
 * tests/preload/counter.py creates and reads the file.
 *
 * glibc (2.26 or newer) has one function of the allocator that enters another by name:
 * reallocarray jumps to realloc through the PLT unless the product overflows. That one is nested.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum function {
	MALLOC,
	CALLOC,
	REALLOC,
	REALLOCARRAY,
	POSIX_MEMALIGN,
	ALIGNED_ALLOC,
	MEMALIGN,
	VALLOC,
	PVALLOC,
	FREE,
	FUNCTIONS,
};

static const char *const names[FUNCTIONS] = {
	"malloc",	 "calloc",   "realloc", "reallocarray", "posix_memalign",
	"aligned_alloc", "memalign", "valloc",	"pvalloc",	"free",
};

#define MAGIC 0x31746e756f437061ull /* "apCount1" */

struct slot {
	atomic_uint_least64_t calls;
	atomic_uint_least64_t bytes;
	atomic_uint_least64_t fresh;	   /* realloc(NULL, n) */
	atomic_uint_least64_t fresh_bytes; /* their part of bytes */
	atomic_uint_least64_t released;	   /* realloc(p, 0), p not NULL */
	atomic_uint_least64_t null;	   /* free(NULL) */
};

struct counts {
	uint64_t magic;
	atomic_uint_least64_t images; /* program images that loaded the counter */
	struct slot functions[FUNCTIONS];
};

/* Set by ld.so to where the kernel put argc; the first call can come before environ is set, and
 * the program may change environ later. */
extern void *__libc_stack_end;

static struct counts nowhere; /* without ALLOCPROF_COUNTER */
static struct counts *_Atomic counts;
static void *_Atomic real[FUNCTIONS];
static bool resolving;

/*
 * Reallocs that a reallocarray is about to jump to, by their stack pointer, which no two threads
 * share. Not a thread-local variable: one more module with TLS makes the C library free one NULL
 * more for every stack that pthread_create reuses.
 */
#define NESTED_SLOTS  1024
#define NESTED_WINDOW 32

static struct {
	_Atomic uintptr_t sp; /* 0 where free */
	uintptr_t pointer;
	uintptr_t size;
} nested[NESTED_SLOTS];

/* A count that is missing must not look like a count that is right. */
static _Noreturn void die(const char *why)
{
	static const char prefix[] = "libcounter: ";

	syscall(SYS_write, 2, prefix, sizeof(prefix) - 1);
	syscall(SYS_write, 2, why, strlen(why));
	syscall(SYS_write, 2, "\n", 1);
	for (;;)
		syscall(SYS_exit_group, 99);
}

static const char *first_environment(const char *name)
{
	char **stack = __libc_stack_end;
	char **env = stack + 1 + *(long *)stack + 1;
	size_t length = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

static struct counts *map_counts(const char *path)
{
	struct counts *c;
	long fd;

	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("cannot open the file in ALLOCPROF_COUNTER");
	/* By syscall(): a library that imports mmap looks like an allocator of its own. */
	c = (void *)syscall(SYS_mmap, NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED)
		die("cannot map the file in ALLOCPROF_COUNTER");
	syscall(SYS_close, fd);
	if (c->magic != MAGIC)
		die("the file in ALLOCPROF_COUNTER is not a counter file");
	return c;
}

/* Always by the only thread: to start another one allocates. */
static struct counts *attach(void)
{
	struct counts *mapped;
	const char *path;
	int saved_errno = errno;

	if (resolving)
		die("dlsym allocates in this C library, the counts would include it");
	resolving = true;
	for (int i = 0; i < FUNCTIONS; i++) {
		void *function = dlsym(RTLD_NEXT, names[i]);

		if (!function)
			die("this C library lacks a function of the allocator");
		atomic_store(&real[i], function);
	}
	resolving = false;

	path = first_environment("ALLOCPROF_COUNTER");
	mapped = path ? map_counts(path) : &nowhere;
	atomic_fetch_add(&mapped->images, 1);
	atomic_store(&counts, mapped);
	errno = saved_errno;
	return mapped;
}

/* An image that never allocates is an image too. */
__attribute__((constructor)) static void loaded(void)
{
	if (!atomic_load(&counts))
		attach();
}

static size_t first_slot(uintptr_t sp)
{
	return (sp * 0x9e3779b97f4a7c15ull) >> 32;
}

static void expect_nested(uintptr_t pointer, uintptr_t size, uintptr_t sp)
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

static bool is_nested(uintptr_t pointer, uintptr_t size, uintptr_t sp)
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

/* Counts a call; its answer is where the stub goes on. */
__attribute__((visibility("hidden"), used)) void *
counter_enter(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t sp, enum function f);

void *counter_enter(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t sp, enum function f)
{
	struct counts *shared = atomic_load(&counts);
	struct slot *slot;
	size_t bytes = 0;
	bool overflow = false;

	if (!shared)
		shared = attach();
	if (f == REALLOC && is_nested(a, b, sp))
		return atomic_load(&real[f]);

	slot = &shared->functions[f];
	switch (f) {
	case MALLOC:
	case VALLOC:
	case PVALLOC:
		bytes = a;
		break;
	case CALLOC:
		overflow = __builtin_mul_overflow(a, b, &bytes);
		break;
	case REALLOC:
	case ALIGNED_ALLOC:
	case MEMALIGN:
		bytes = b;
		break;
	case REALLOCARRAY:
		overflow = __builtin_mul_overflow(b, c, &bytes);
		if (!overflow)
			expect_nested(a, bytes, sp);
		break;
	case POSIX_MEMALIGN:
		bytes = c;
		break;
	case FREE:
		if (!a)
			atomic_fetch_add(&slot->null, 1);
		break;
	case FUNCTIONS:
		break;
	}
	if (overflow)
		bytes = 0;
	if (f == REALLOC || f == REALLOCARRAY) {
		if (!a) {
			atomic_fetch_add(&slot->fresh, 1);
			atomic_fetch_add(&slot->fresh_bytes, bytes);
		} else if (!bytes && !overflow) {
			atomic_fetch_add(&slot->released, 1);
		}
	}
	atomic_fetch_add(&slot->calls, 1);
	atomic_fetch_add(&slot->bytes, bytes);
	return atomic_load(&real[f]);
}

#ifndef __x86_64__
#error "the stubs are written for x86-64"
#endif

/* No function of the allocator has more than three arguments, so that three pushes save them all
 * and align the stack for the helper. */
#define STUB(name, index)                                                                          \
	__asm__(".pushsection .text\n"                                                             \
		".globl " #name "\n"                                                               \
		".type " #name ", @function\n"                                                     \
		".p2align 4\n" #name ":\n"                                                         \
		".cfi_startproc\n"                                                                 \
		"	endbr64\n"                                                                       \
		"	mov %rsp, %rcx\n"                                                                \
		"	push %rdi\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %rsi\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %rdx\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	mov $" #index ", %r8d\n"                                                   \
		"	call counter_enter\n"                                                            \
		"	pop %rdx\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	pop %rsi\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	pop %rdi\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	jmp *%rax\n"                                                                     \
		".cfi_endproc\n"                                                                   \
		".size " #name ", . - " #name "\n"                                                 \
		".popsection\n")

#define CHECK(index, function) _Static_assert((index) == (function), "a stub counts as another")

CHECK(0, MALLOC);
STUB(malloc, 0);
CHECK(1, CALLOC);
STUB(calloc, 1);
CHECK(2, REALLOC);
STUB(realloc, 2);
CHECK(3, REALLOCARRAY);
STUB(reallocarray, 3);
CHECK(4, POSIX_MEMALIGN);
STUB(posix_memalign, 4);
CHECK(5, ALIGNED_ALLOC);
STUB(aligned_alloc, 5);
CHECK(6, MEMALIGN);
STUB(memalign, 6);
CHECK(7, VALLOC);
STUB(valloc, 7);
CHECK(8, PVALLOC);
STUB(pvalloc, 8);
CHECK(9, FREE);
STUB(free, 9);
