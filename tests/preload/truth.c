// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The independent truth about stacks: before each call of the C library's allocator the process
 * unwinds its own stack with libgcc's _Unwind_Backtrace and appends it to the file that
 * ALLOCPROF_COUNTER names in its first environment. tests/preload/truth.py reads it.
 *
 * Every stub records and then jumps to the real function. Whoever unwinds from there sees the very
 * addresses that are in the file, from the allocator's caller to the outermost frame.
 *
 * Preloaded, it sees every call that goes through the PLT or by name, those of the C library and of
 * ld.so too. For static programs the same file is built with TRUTH_WRAP and linked with
 * -Wl,--wrap=malloc,--wrap=...; it sees the calls from the first constructor on.
 *
 * One line per call, its fields separated by tabs: function, bytes, process id, frames, paths.
 * Frames are separated by spaces, each MODULE+ADDRESS: an index into the paths and the pc as an ELF
 * virtual address in hexadecimal, or -+ADDRESS where nothing is mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common.h"
#include "frames.h"

const char library_name[] = "truth";

#ifdef TRUTH_WRAP
#define IS_PRELOADED false
#define PREFIX	     "__wrap_"
#else
#define IS_PRELOADED true
#define PREFIX	     ""
#endif

#define MAX_FRAMES  2048
#define MAX_MODULES 64
#define MAX_TEXT    (64 << 10)
#define MAX_ACTIVE  64

/* One call that is being recorded. Not on the stack, which may be a small one. */
struct record {
	atomic_bool used;
	size_t n_frames;
	uintptr_t frames[MAX_FRAMES];
	size_t n_modules;
	const char *modules[MAX_MODULES];
	uintptr_t biases[MAX_MODULES];
	char text[MAX_TEXT];
	size_t length;
};

static struct record records[MAX_ACTIVE];
static const char *output;
/* libgcc allocates where a static program registers its tables. */
static __thread bool inside;

#ifdef TRUTH_WRAP

static bool started;

/* Before, libgcc does not know the program's tables. */
__attribute__((constructor)) static void start(void)
{
	started = true;
}

#else

static const bool started = true;

#endif

static struct record *begin(void)
{
	for (size_t i = 0; i < MAX_ACTIVE; i++) {
		struct record *r = &records[i];

		if (atomic_exchange(&r->used, true))
			continue;
		r->n_modules = 0;
		r->length = 0;
		return r;
	}
	die("too many calls at once");
}

static int module_index(struct record *r, uintptr_t pc)
{
	uintptr_t bias;
	const char *path = frames__module(pc, &bias);
	size_t i;

	if (!path)
		return -1;
	for (i = 0; i < r->n_modules; i++)
		if (r->biases[i] == bias && r->modules[i] == path)
			return i;
	if (i == MAX_MODULES)
		die("too many modules in a stack");
	r->modules[i] = path;
	r->biases[i] = bias;
	r->n_modules++;
	return i;
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
	for (size_t i = 0; i < r->n_frames; i++) {
		int module = module_index(r, r->frames[i]);

		put(r, i ? " " : "");
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

static void finish(struct record *r, enum function f, size_t bytes)
{
	put(r, function_names[f]);
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
	int saved_errno = errno;
	struct record *r;
	bool overflow;
	size_t bytes = requested_bytes(f, a, b, c, &overflow);

	if (!output && started)
		output = first_environment("ALLOCPROF_COUNTER");
	if (f == REALLOC && IS_PRELOADED && nested__take(a, b, (uintptr_t)sp))
		return real_function(f);
	/* In a static program it jumps to a stub, so that nobody can tell it from a call. */
	if (f == REALLOCARRAY && IS_PRELOADED && !overflow)
		nested__expect(a, bytes, (uintptr_t)sp);
	if (output && !inside) {
		inside = true;
		r = begin();
		r->n_frames = frames__capture(r->frames, MAX_FRAMES, stub__return_address(sp));
		finish(r, f, bytes);
		atomic_store(&r->used, false);
		inside = false;
	}
	errno = saved_errno;
	return real_function(f);
}

#define STUB(index, constant, name) JUMPING_STUB(PREFIX #name, index, "truth_enter");
ALLOCATING_FUNCTIONS(STUB)
