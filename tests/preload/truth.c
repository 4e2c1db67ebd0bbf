// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The independent truth about stacks: before each call of the C library's allocator the process
 * unwinds its own stack with libgcc's _Unwind_Backtrace and appends it to the file that
 * ALLOCPROF_COUNTER names in its first environment. tests/preload/truth.py reads it.
 *
 * Every stub records and then jumps to the real function with the caller's registers, stack pointer
 * and return address. Whoever unwinds from the real function sees the very addresses that are in
 * the file, from the allocator's caller to the outermost frame.
 *
 * Preloaded, it sees every call that goes through the PLT or by name, those of the C library and of
 * ld.so too. For static programs the same file is built with TRUTH_WRAP and linked with
 * -Wl,--wrap=malloc,--wrap=...; it sees the calls from the first constructor on.
 *
 * One line per call, its fields separated by tabs: function, bytes, process id, frames, paths.
 * Frames are separated by spaces, each MODULE+ADDRESS: an index into the paths and the pc as an ELF
 * virtual address in hexadecimal, or -+ADDRESS where nothing is mapped. What libgcc says of the
 * outermost end is taken as follows: the frame whose CFI leaves the return address undefined
 * (_start, clone3) is reported as any other and is the last; behind it libgcc reports one more of
 * address 0, which is dropped. A frame without CFI is the last, too, and is kept.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

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
	FUNCTIONS,
};

static const char *const names[FUNCTIONS] = {
	"malloc",	 "calloc",   "realloc", "reallocarray", "posix_memalign",
	"aligned_alloc", "memalign", "valloc",	"pvalloc",
};

#ifdef TRUTH_WRAP
#define IS_PRELOADED false
#define PREFIX	     "__wrap_"
#else
#define IS_PRELOADED true
#define PREFIX	     ""
#endif

#define MAX_FRAMES  2048
#define MAX_MODULES 64
#define MAX_PATH    4096
#define MAX_TEXT    (64 << 10)
#define MAX_ACTIVE  64

/* The innermost frames that libgcc reports: truth_enter and the stub. */
#define OWN_FRAMES 2

/* One call that is being recorded. Not on the stack, which may be a small one. */
struct record {
	atomic_bool used;
	size_t n_frames; /* with OWN_FRAMES */
	uintptr_t frames[MAX_FRAMES];
	signed char module_of[MAX_FRAMES];
	size_t n_modules;
	const char *modules[MAX_MODULES];
	uintptr_t biases[MAX_MODULES];
	char program[MAX_PATH];
	char text[MAX_TEXT];
	size_t length;
};

/* Set by ld.so to where the kernel put argc; the first call can come before environ is set, and
 * the program may change environ later. */
extern void *__libc_stack_end;

static struct record records[MAX_ACTIVE];
static const char *output;
/* libgcc allocates where a static program registers its tables. */
static __thread bool inside;
/* Where a reallocarray is about to jump to realloc by name, as glibc's does: that one is no call. In
 * a static program it jumps to a stub, so that nobody can tell it from one. */
static __thread const uintptr_t *nested_sp;

static _Noreturn void die(const char *why)
{
	static const char prefix[] = "truth: ";

	syscall(SYS_write, 2, prefix, sizeof(prefix) - 1);
	syscall(SYS_write, 2, why, strlen(why));
	syscall(SYS_write, 2, "\n", 1);
	for (;;)
		syscall(SYS_exit_group, 99);
}

static const char *first_environment(const char *name)
{
#ifdef TRUTH_WRAP
	/* There __libc_stack_end is something else, and environ is set from the start. */
	char **env = environ;
#else
	char **stack = __libc_stack_end;
	char **env = stack + 1 + *(long *)stack + 1;
#endif
	size_t length = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

#ifdef TRUTH_WRAP

static bool started;

/* Before, libgcc does not know the program's tables. */
__attribute__((constructor)) static void start(void)
{
	started = true;
}

#define DECLARE(name) void __real_##name(void)
DECLARE(malloc);
DECLARE(calloc);
DECLARE(realloc);
DECLARE(reallocarray);
DECLARE(posix_memalign);
DECLARE(aligned_alloc);
DECLARE(memalign);
DECLARE(valloc);
DECLARE(pvalloc);

static void (*const real[FUNCTIONS])(void) = {
	__real_malloc,	     __real_calloc,	    __real_realloc,
	__real_reallocarray, __real_posix_memalign, __real_aligned_alloc,
	__real_memalign,     __real_valloc,	    __real_pvalloc,
};

static void *real_function(enum function f)
{
	return (void *)real[f];
}

#else

static const bool started = true;

static void *real_function(enum function f)
{
	static void *_Atomic real[FUNCTIONS];
	void *function = atomic_load(&real[f]);

	if (!function) {
		function = dlsym(RTLD_NEXT, names[f]);
		if (!function)
			die("this C library lacks a function of the allocator");
		atomic_store(&real[f], function);
	}
	return function;
}

#endif

static struct record *begin(void)
{
	for (size_t i = 0; i < MAX_ACTIVE; i++) {
		struct record *r = &records[i];

		if (atomic_exchange(&r->used, true))
			continue;
		r->n_frames = 0;
		r->n_modules = 0;
		r->length = 0;
		return r;
	}
	die("too many calls at once");
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *record)
{
	struct record *r = record;

	if (r->n_frames == MAX_FRAMES)
		die("the stack is too deep");
	r->frames[r->n_frames++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static bool maps(const struct dl_phdr_info *info, uintptr_t pc)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
		    pc - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *record)
{
	struct record *r = record;
	bool seen = false;

	for (size_t i = 0; i < r->n_frames; i++) {
		if (r->module_of[i] >= 0 || !maps(info, r->frames[i]))
			continue;
		r->module_of[i] = r->n_modules;
		seen = true;
	}
	if (!seen)
		return 0;
	if (r->n_modules + 1 == MAX_MODULES)
		die("too many modules in a stack");
	if (!info->dlpi_name[0]) {
		long n = syscall(SYS_readlink, "/proc/self/exe", r->program, MAX_PATH - 1);

		r->program[n < 0 ? 0 : n] = '\0';
		r->modules[r->n_modules] = r->program;
	} else {
		r->modules[r->n_modules] = info->dlpi_name;
	}
	r->biases[r->n_modules++] = info->dlpi_addr;
	return 0;
}

static void put(struct record *r, const char *text)
{
	size_t n = strlen(text);

	if (n > MAX_TEXT - r->length)
		die("the line is too long");
	memcpy(r->text + r->length, text, n);
	r->length += n;
}

static void put_number(struct record *r, uintptr_t number, unsigned int base)
{
	char digits[32];
	char *p = digits + sizeof(digits);

	*--p = '\0';
	do {
		*--p = "0123456789abcdef"[number % base];
	} while (number /= base);
	put(r, p);
}

static void put_frames(struct record *r)
{
	for (size_t i = OWN_FRAMES; i < r->n_frames; i++) {
		int module = r->module_of[i];

		put(r, i == OWN_FRAMES ? "" : " ");
		if (module < 0)
			put(r, "-");
		else
			put_number(r, module, 10);
		put(r, "+");
		put_number(r, r->frames[i] - (module < 0 ? 0 : r->biases[module]), 16);
	}
}

static void append(const struct record *r)
{
	long fd = syscall(SYS_openat, AT_FDCWD, output, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		die("cannot open the file in ALLOCPROF_COUNTER");
	if (syscall(SYS_write, fd, r->text, r->length) != (long)r->length)
		die("cannot write to the file in ALLOCPROF_COUNTER");
	syscall(SYS_close, fd);
}

static size_t asked_for(enum function f, uintptr_t a, uintptr_t b, uintptr_t c)
{
	size_t bytes;

	switch (f) {
	case CALLOC:
		return __builtin_mul_overflow(a, b, &bytes) ? 0 : bytes;
	case REALLOCARRAY:
		return __builtin_mul_overflow(b, c, &bytes) ? 0 : bytes;
	case REALLOC:
	case ALIGNED_ALLOC:
	case MEMALIGN:
		return b;
	case POSIX_MEMALIGN:
		return c;
	default:
		return a;
	}
}

static __attribute__((noinline)) void finish(struct record *r, enum function f, size_t bytes,
					     uintptr_t return_address)
{
	if (r->n_frames && !r->frames[r->n_frames - 1])
		r->n_frames--;
	if (r->n_frames <= OWN_FRAMES || r->frames[OWN_FRAMES] != return_address)
		die("libgcc does not find the allocator's caller");
	memset(r->module_of, -1, r->n_frames);
	dl_iterate_phdr(add_module, r);
	put(r, names[f]);
	put(r, "\t");
	put_number(r, bytes, 10);
	put(r, "\t");
	put_number(r, syscall(SYS_getpid), 10);
	put(r, "\t");
	put_frames(r);
	for (size_t i = 0; i < r->n_modules; i++) {
		put(r, "\t");
		put(r, r->modules[i]);
	}
	put(r, "\n");
	append(r);
}

/* Records a call, @sp as at its entry; the answer is where the stub goes on. */
__attribute__((visibility("hidden"), used)) void *truth_enter(uintptr_t a, uintptr_t b, uintptr_t c,
							      const uintptr_t *sp, enum function f);

__attribute__((noinline)) void *truth_enter(uintptr_t a, uintptr_t b, uintptr_t c,
					    const uintptr_t *sp, enum function f)
{
	size_t bytes = asked_for(f, a, b, c), product;
	int saved_errno = errno;
	struct record *r;

	if (!output && started)
		output = first_environment("ALLOCPROF_COUNTER");
	if (f == REALLOC && nested_sp == sp) {
		nested_sp = NULL;
		return real_function(f);
	}
	nested_sp = IS_PRELOADED && f == REALLOCARRAY && !__builtin_mul_overflow(b, c, &product)
			    ? sp
			    : NULL;
	if (output && !inside) {
		inside = true;
		r = begin();
		_Unwind_Backtrace(add_frame, r);
		finish(r, f, bytes, *sp);
		atomic_store(&r->used, false);
		inside = false;
	}
	errno = saved_errno;
	return real_function(f);
}

#ifndef __x86_64__
#error "the stubs are written for x86-64"
#endif

/* No function of the allocator has more than three arguments, so that three pushes save them all
 * and align the stack for the helper. */
#define STUB(name, index)                                                                          \
	__asm__(".pushsection .text\n"                                                             \
		".globl " PREFIX #name "\n"                                                        \
		".type " PREFIX #name ", @function\n"                                              \
		".p2align 4\n" PREFIX #name ":\n"                                                  \
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
		"	call truth_enter\n"                                                              \
		"	pop %rdx\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	pop %rsi\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	pop %rdi\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	jmp *%rax\n"                                                                     \
		".cfi_endproc\n"                                                                   \
		".size " PREFIX #name ", . - " PREFIX #name "\n"                                   \
		".popsection\n")

#define CHECK(index, function) _Static_assert((index) == (function), "a stub records as another")

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
