// SPDX-License-Identifier: GPL-3.0-or-later
// Namespaces, classes, lambdas, inlined functions and blocks in DWARF; functions with the names of an allocator.
namespace outer
{
namespace
{
struct hidden {
	int value;
	__attribute__((noinline)) int get() const
	{
		auto twice = [this](int n) { return 2 * n + value; };

		return twice(value);
	}
};
} // namespace

template <typename T> static inline T sum(const T *values, int n)
{
	T total = 0;

	for (int i = 0; i < n; i++) {
		T value = values[i];

		total += value;
	}
	return total;
}
} // namespace outer

static char room[4096];
static unsigned long used;

extern "C" void *malloc(unsigned long size)
{
	void *block = room + used;

	used += (size + 15) & ~15UL;
	return block;
}

extern "C" void free(void *)
{
}

extern "C" void *calloc(unsigned long n, unsigned long size)
{
	return malloc(n * size);
}

int total(const int *values, int n)
{
	outer::hidden hidden = { n };

	return outer::sum(values, n) + hidden.get();
}
