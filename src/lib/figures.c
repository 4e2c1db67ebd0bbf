// SPDX-License-Identifier: GPL-3.0-or-later
#include "figures.h"

#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
	__s64 x = *(const __s64 *)a, y = *(const __s64 *)b;

	return x < y ? -1 : x > y;
}

struct figure_range figures__range(__s64 *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_values);
	return (struct figure_range){
		.min = values[0],
		.median = values[(n - 1) / 2],
		.max = values[n - 1],
	};
}
