/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_ARRAY_H
#define ALLOCPROF_ARRAY_H

#include <stddef.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Makes room for @n elements of @size bytes in *@array, which has room for *@room. 0 or -ENOMEM. */
int array__reserve(void *array, size_t *room, size_t n, size_t size);
/* The same; all that is new is zeroed. */
int array__reserve_zeroed(void *array, size_t *room, size_t n, size_t size);

#endif
