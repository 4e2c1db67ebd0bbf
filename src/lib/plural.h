/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences about one thing or several. */
#ifndef ALLOCPROF_PLURAL_H
#define ALLOCPROF_PLURAL_H

#include <linux/types.h>

struct plural_text {
	char text[320];
};

/* Returns @sentence with the first part of each "{was|were}" where @n is 1, else with the second; cut where it is too long. */
struct plural_text plural__of(const char *sentence, __u64 n);

#endif
