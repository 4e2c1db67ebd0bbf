// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Functions that end by calling another one, for which the compiler writes a jump: their frames are gone when that
 * allocates. Each calls malloc() once:
 *
 *   1000 bytes  main, wrapper
 *   2000        main, outer, inner
 *   3000, 3001  main, one_of_two, which ends by outer or by inner, and outer by inner
 *   4000        main, to_caller, caller, which has a frame, outer, inner
 *   5000        main, by_pointer, and what that points to
 *   7000        main, split, of which a part is elsewhere
 *   8000        main, recursive, two times
 */
#include <stdlib.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static int n;

static NOINLINE void *wrapper(void)
{
	n++;
	return malloc(1000);
}

static NOINLINE void *inner(size_t size)
{
	n += 2;
	return malloc(size);
}

static NOINLINE void *outer(size_t size)
{
	n += 3;
	return inner(size);
}

static NOINLINE void *one_of_two(size_t size)
{
	n += 4;
	return size & 1 ? outer(size) : inner(size);
}

static NOINLINE void *caller(size_t size)
{
	void *volatile block = outer(size);

	return block;
}

static NOINLINE void *to_caller(size_t size)
{
	n += 5;
	return caller(size);
}

static void *(*volatile pointer)(size_t) = inner;

static NOINLINE void *by_pointer(size_t size)
{
	n += 6;
	return pointer(size);
}

static NOINLINE void *split(size_t size)
{
	n += 8;
	if (__builtin_expect(size > 10, 0)) {
		void *volatile block = malloc(size);

		n *= 5;
		return block;
	}
	return NULL;
}

static NOINLINE void *recursive(size_t size, int times)
{
	n += 9;
	return times ? recursive(size, times - 1) : malloc(size);
}

int main(void)
{
	void *volatile block = wrapper();

	block = outer(2000);
	block = one_of_two(3000);
	block = one_of_two(3001);
	block = to_caller(4000);
	block = by_pointer(5000);
	block = split(7000);
	block = recursive(8000, 2);
	return !block;
}
