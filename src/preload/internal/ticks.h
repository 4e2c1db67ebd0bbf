/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The processor's counter, which src/inside reads, too: ticks_<processor>.c. */
#ifndef ALLOCPROF_TICKS_H
#define ALLOCPROF_TICKS_H

#include <linux/types.h>
#include <stdbool.h>

/* Returns whether the kernel's clock of this name, as sysfs has it, uses the counter. */
bool ticks__are_of(const char *clock);

__u64 ticks__read(void);

#endif
