// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * As tail_calls.c, in C++:
 *
 *   1000 bytes  main, Derived::wrap, allocate
 *   2000        main, create, operator new
 *   3000        main, array<long>, allocate
 */
#include <cstdlib>
#include <new>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static int n;

static NOINLINE void *allocate(size_t size)
{
	n++;
	return std::malloc(size);
}

struct Derived {
	static NOINLINE void *wrap(size_t size)
	{
		n += 2;
		return allocate(size);
	}
};

static NOINLINE void *create(size_t size)
{
	n += 3;
	return ::operator new(size);
}

template <class T> static NOINLINE void *array(size_t count)
{
	return allocate(count * sizeof(T));
}

int main()
{
	void *volatile block = Derived::wrap(1000);

	block = create(2000);
	block = array<long>(375);
	return !block;
}
