/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers that look random and are the same in each run (xorshift64*). */
#ifndef ALLOCPROF_TESTS_RANDOM_H
#define ALLOCPROF_TESTS_RANDOM_H

#include <linux/types.h>

static __u64 random_state;

static inline __u64 random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dULL;
}

/* One of 0 to @n - 1. */
static inline __u32 below(__u32 n)
{
	return (random_u64() >> 33) % n;
}

static inline void seed(__u64 value)
{
	random_state = value * 0x9e3779b97f4a7c15ULL + 1;
	for (int i = 0; i < 8; i++)
		random_u64();
}

#endif
