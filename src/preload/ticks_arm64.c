// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the virtual counter. */
#include "ticks.h"

#include <string.h>

bool ticks__are_of(const char *clock)
{
	return !strcmp(clock, "arch_sys_counter\n");
}

__u64 ticks__read(void)
{
	__u64 ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}
