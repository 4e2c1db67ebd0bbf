/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Range and median of a figure over several runs. */
#ifndef ALLOCPROF_FIGURES_H
#define ALLOCPROF_FIGURES_H

#include <linux/types.h>
#include <stddef.h>

struct figure_range {
	__s64 min, max;
	__s64 median; /* the lower one of two, so that it is a value of some run */
};

/* Sorts the @n values, at least one. */
struct figure_range figures__range(__s64 *values, size_t n);

#endif
