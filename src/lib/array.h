/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays that grow, binary search in sorted arrays, and the range of an array of figures. */
#ifndef ALLOCPROF_ARRAY_H
#define ALLOCPROF_ARRAY_H

#include <linux/types.h>
#include <stddef.h>

#ifndef ARRAY_SIZE /* libiberty.h defines the same macro */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* Grows *@array, which has room for *@room elements of @size bytes, so that it has room for @n.
 * Returns 0 or -ENOMEM. */
int array__reserve(void *array, size_t *room, size_t n, size_t size);
/* Does the same, and zeroes the new elements. */
int array__reserve_zeroed(void *array, size_t *room, size_t n, size_t size);
/* Returns a copy of @n elements of @size bytes, which the caller frees; NULL if there is no
 * memory. */
void *array__copy(const void *array, size_t n, size_t size);

/*
 * The first index below @n for which the expression @is_before, which contains the index as @at,
 * is false; @n if it is true for all. It must be true for the first elements up to some index, and
 * false for all others.
 */
#define ARRAY_LOWER_BOUND(n, at, is_before)                                                        \
	({                                                                                         \
		size_t low_ = 0, high_ = (n);                                                      \
                                                                                                   \
		while (low_ < high_) {                                                             \
			size_t at = low_ + (high_ - low_) / 2;                                     \
                                                                                                   \
			if (is_before)                                                             \
				low_ = at + 1;                                                     \
			else                                                                       \
				high_ = at;                                                        \
		}                                                                                  \
		low_;                                                                              \
	})

/* Range and median of a figure over several runs. */
struct figure_range {
	__s64 min, max;
	/* The lower one of the two in the middle if the number of values is even, so that it is a
	 * value of some run. */
	__s64 median;
};

/* Sorts the @n values, of which there is at least one, and returns their range. */
struct figure_range figures__range(__s64 *values, size_t n);

#endif
