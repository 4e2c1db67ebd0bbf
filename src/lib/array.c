// SPDX-License-Identifier: GPL-3.0-or-later
#include "array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN_ROOM 16

int array__reserve(void *array, size_t *room, size_t n, size_t size)
{
	size_t more = *room > MIN_ROOM ? *room : MIN_ROOM;
	void *old, *grown;

	if (n <= *room)
		return 0;
	while (more < n) {
		if (more > SIZE_MAX / 2)
			return -ENOMEM;
		more *= 2;
	}
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, more, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*room = more;
	return 0;
}

int array__reserve_zeroed(void *array, size_t *room, size_t n, size_t size)
{
	size_t old_room = *room;
	char *elements;
	int err = array__reserve(array, room, n, size);

	if (err)
		return err;
	memcpy(&elements, array, sizeof(elements));
	if (*room > old_room)
		memset(elements + old_room * size, 0, (*room - old_room) * size);
	return 0;
}

void *array__copy(const void *array, size_t n, size_t size)
{
	void *copy = reallocarray(NULL, n, size);

	return copy ? memcpy(copy, array, n * size) : NULL;
}

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
