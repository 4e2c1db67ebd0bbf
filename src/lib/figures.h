/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What several runs of one thing came to. */
#ifndef ALLOCPROF_FIGURES_H
#define ALLOCPROF_FIGURES_H

#include <linux/types.h>
#include <stddef.h>

struct figure_range {
	__s64 min, max;
	__s64 median; /* of an even number the lower one in the middle, so that it is one that was seen */
};

/* Of @n values, at least one, which are sorted. */
struct figure_range figures__range(__s64 *values, size_t n);

#endif
