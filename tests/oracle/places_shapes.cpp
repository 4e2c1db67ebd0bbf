// SPDX-License-Identifier: GPL-3.0-or-later
// Places whose names and lines places_matrix.py knows: each is where probe() returns to. The marker is
// on the line of the call that the lines are named after.

#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif

extern "C" NOIPA void probe(int which)
{
	asm volatile("" : : "r"(which) : "memory");
}

template <typename T, int N> struct Holder {
	T value;

	__attribute__((always_inline)) Holder(T initial) : value(initial)
	{
		probe(1); // in_constructor
		value += N;
	}
	__attribute__((noinline)) T twice();
};

template <typename T, int N> T Holder<T, N>::twice()
{
	probe(2); // in_template
	return value * 2;
}

namespace
{
__attribute__((noinline)) int hidden(int x)
{
	probe(3); // in_anonymous
	return x + 1;
}
} // namespace

__attribute__((noinline)) int outer(int x)
{
	Holder<long, 7> holder(x); // construct
	auto lambda = [&](int y) __attribute__((always_inline))
	{
		probe(4); // in_lambda
		return y * (int)holder.value;
	};

	return lambda(x) + (int)holder.twice() + hidden(x); // call_lambda
}

extern "C" __attribute__((visibility("default"), noinline)) int exported(int x)
{
	int result = outer(x);

	probe(5); // in_exported
	return result;
}

int main(int argc, char *argv[])
{
	return exported(argc) == 0;
}
