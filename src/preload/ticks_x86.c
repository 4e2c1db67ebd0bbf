// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the time stamp counter. */
#include "ticks.h"

#include <string.h>

bool ticks__are_of(const char *clock)
{
	return !strcmp(clock, "tsc\n") || !strcmp(clock, "kvm-clock\n");
}

__u64 ticks__read(void)
{
	return __builtin_ia32_rdtsc();
}
