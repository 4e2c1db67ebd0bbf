// SPDX-License-Identifier: GPL-3.0-or-later
/* For dlopen_lib: its constructor makes 17 blocks of 50 bytes by malloc, its destructor frees 16. */
#include <stdlib.h>

static void *blocks[17];

__attribute__((constructor)) static void loaded(void)
{
	for (int i = 0; i < 17; i++)
		blocks[i] = malloc(50);
}

__attribute__((destructor)) static void unloaded(void)
{
	for (int i = 0; i < 16; i++)
		free(blocks[i]);
}
