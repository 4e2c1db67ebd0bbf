// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A library that window loads while it runs. later_measured(N) makes N blocks of 40 bytes and frees
 * them, N - 1 of them in the region "later" of include/allocprof.h; later_outside() makes one of 41 bytes
 * before and one after.
 */
#include <cstdlib>

#include "allocprof.h"

#define NOINLINE __attribute__((noinline))

NOINLINE static void block(size_t size)
{
	void *made = malloc(size);

	asm volatile("" : "+r"(made));
	free(made);
	asm volatile("");
}

extern "C" {
NOINLINE void later_measured(int n)
{
	block(40);
	ALLOCPROF_BEGIN("later");
	for (int i = 1; i < n; i++)
		block(40);
	ALLOCPROF_END("later");
	asm volatile("");
}

NOINLINE void later_outside(int n)
{
	block(41);
	later_measured(n);
	block(41);
	asm volatile("");
}
}
