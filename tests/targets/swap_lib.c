// SPDX-License-Identifier: GPL-3.0-or-later
/* For swap_code. Built twice, as two functions of NAME with frames of LOCAL_BYTES at one address. */
#include <stddef.h>

void *NAME(void *(*allocate)(size_t), size_t size);

void *NAME(void *(*allocate)(size_t), size_t size)
{
	volatile char local[LOCAL_BYTES];
	void *block;

	local[0] = 1;
	block = allocate(size);
	local[1] = local[0];
	return block;
}
