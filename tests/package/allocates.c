// SPDX-License-Identifier: GPL-3.0-or-later
/* Allocates as many blocks as the first argument says, and frees each; with a second argument again and again, until it is killed. */
#include <stdlib.h>
#include <unistd.h>

void *volatile block;

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	do {
		for (int i = 0; i < n; i++) {
			block = malloc(100);
			free(block);
		}
		usleep(10000);
	} while (argc > 2);
	return 0;
}
