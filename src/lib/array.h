/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays that grow, binary search in sorted ones, and the range of an array of figures. */
#ifndef ALLOCPROF_ARRAY_H
#define ALLOCPROF_ARRAY_H

#include <linux/types.h>
#include <stddef.h>

#ifndef ARRAY_SIZE /* libiberty.h defines the same */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* Grows *@array, which has room for *@room elements of @size bytes, to @n. 0 or -ENOMEM. */
int array__reserve(void *array, size_t *room, size_t n, size_t size);
/* The same; zeroes the new elements. */
int array__reserve_zeroed(void *array, size_t *room, size_t n, size_t size);
/* A copy of @n elements of @size bytes, to be freed; NULL on ENOMEM. */
void *array__copy(const void *array, size_t n, size_t size);

/*
 * The first index below @n for which @is_before, an expression of the index @at, is false; @n if it is
 * true for all. It must be true for some first elements and for none after them.
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
	__s64 median; /* the lower one of two, so that it is a value of some run */
};

/* Sorts the @n values, at least one. */
struct figure_range figures__range(__s64 *values, size_t n);

#endif
