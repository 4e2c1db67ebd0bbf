// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Has a malloc, calloc, realloc and free of its own, which hand on to the C library's, and prints its
 * own backtrace from within them in marked calls: after the C library's function has returned, and
 * in a handler of a signal that the wrapper raises before it calls that. Who changes a return address
 * that lies on the stack changes what is printed. The handler allocates, too.
 *
 *   malloc: 24 calls, 864 bytes
 *   calloc: 8 calls, 512 bytes
 *   realloc: 8 calls, 1600 bytes
 *   free: 32 calls, 0 bytes
 *
 * In 8 rounds, each from one level deeper: malloc(40), marked to print; calloc(4, 16); realloc of
 * the first to 200, marked to print; malloc(30), marked to raise, where the handler does malloc(38)
 * and free; 3 free, marked to print. Prints the frames, exit status 0.
 *
 * With the argument "fault" it prints but one backtrace, from within the C library's realloc: that
 * copies a block of which a page cannot be read, and the handler of SIGSEGV prints and mends it.
 *
 *   fault, malloc: 2 calls, 102416 bytes; realloc: 1 call, 122880 bytes; free: 2 calls
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unwind.h>
#include "print_frame.h"

DEFINE_SINK;

enum mark {
	NONE,
	PRINT,
	RAISE
};

static volatile enum mark mark;

static _Unwind_Reason_Code print_one(struct _Unwind_Context *context, void *unused)
{
	void *pc = (void *)_Unwind_GetIP(context);

	if (pc)
		print_frame(pc);
	return _URC_NO_REASON;
}

static __attribute__((noinline)) void print_frames(const char *title)
{
	say(title);
	_Unwind_Backtrace(print_one, NULL);
	__asm__ volatile("" : : : "memory");
}

static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		_exit(4);
	return function;
}

/* What the mark asks for, which is good for one call. */
static __attribute__((noinline)) void before(void)
{
	if (mark != RAISE)
		return;
	mark = NONE;
	raise(SIGUSR1);
}

static __attribute__((noinline)) void after(const char *name)
{
	if (mark != PRINT)
		return;
	mark = NONE;
	print_frames(name);
}

__attribute__((noinline)) void *malloc(size_t size)
{
	static void *(*real)(size_t);
	void *block;

	if (!real)
		real = next("malloc");
	before();
	block = real(size);
	after("malloc\n");
	return block;
}

__attribute__((noinline)) void *calloc(size_t n, size_t size)
{
	static void *(*real)(size_t, size_t);
	void *block;

	if (!real)
		real = next("calloc");
	before();
	block = real(n, size);
	after("calloc\n");
	return block;
}

__attribute__((noinline)) void *realloc(void *old, size_t size)
{
	static void *(*real)(void *, size_t);
	void *block;

	if (!real)
		real = next("realloc");
	before();
	block = real(old, size);
	after("realloc\n");
	return block;
}

__attribute__((noinline)) void free(void *block)
{
	static void (*real)(void *);

	if (!real)
		real = next("free");
	before();
	real(block);
	after("free\n");
}

static void handler(int signal)
{
	print_frames("handler\n");
	sink = malloc(38);
	free(sink);
}

int descend(int depth);

__attribute__((noinline)) int descend(int depth)
{
	void *a, *b, *c;

	if (depth) {
		int below = descend(depth - 1);

		/* Each level is to have a frame. */
		__asm__ volatile("" : : : "memory");
		return below + depth;
	}
	mark = PRINT;
	a = malloc(40);
	b = calloc(4, 16);
	mark = PRINT;
	a = realloc(a, 200);
	mark = RAISE;
	c = malloc(30);
	for (int i = 0; i < 3; i++) {
		mark = PRINT;
		free(i == 0 ? a : i == 1 ? b : c);
	}
	return 0;
}

static void *unreadable;

static void mend(int signal)
{
	print_frames("fault\n");
	mprotect(unreadable, 4096, PROT_READ | PROT_WRITE);
}

/* The second block keeps the first from growing where it is. Both are too small for mmap(). */
static __attribute__((noinline)) void fault_in_realloc(void)
{
	char *a = malloc(100 << 10), *b = malloc(16);

	signal(SIGSEGV, mend);
	unreadable = (void *)(((uintptr_t)a + 8192) & ~(uintptr_t)4095);
	mprotect(unreadable, 4096, PROT_NONE);
	a = realloc(a, 120 << 10);
	free(a);
	free(b);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "fault")) {
		fault_in_realloc();
		return 0;
	}
	signal(SIGUSR1, handler);
	for (int i = 0; i < 8; i++)
		descend(i);
	return 0;
}
