/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_ARRAY_H
#define ALLOCPROF_ARRAY_H

#include <stddef.h>

#ifndef ARRAY_SIZE /* libiberty.h defines the same */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* Grows *@array, which has room for *@room elements of @size bytes, to @n. 0 or -ENOMEM. */
int array__reserve(void *array, size_t *room, size_t n, size_t size);
/* The same; zeroes the new elements. */
int array__reserve_zeroed(void *array, size_t *room, size_t n, size_t size);

#endif
