// SPDX-License-Identifier: GPL-3.0-or-later
// A test in C++ that a vector with reserved memory allocates nothing more: the difference of two readings of the
// process. Without -DREGRESSION the memory is reserved.
#include <allocprof.h>
#include <cstdio>
#include <vector>

int main()
{
	allocprof_figures before, after;
	std::vector<int> numbers;

#ifndef REGRESSION
	numbers.reserve(1000);
#endif
	int answer = allocprof_read(nullptr, &before);
	for (int i = 0; i < 1000; i++)
		numbers.push_back(i);
	allocprof_read(nullptr, &after);

	if (answer == ALLOCPROF_READ_NOBODY) {
		std::puts("allocations not checked: allocprof does not measure this process");
		return 0;
	}
	std::printf("push_back() allocated %llu times\n", after.allocations - before.allocations);
	return answer > 0 && after.allocations == before.allocations ? 0 : 1;
}
