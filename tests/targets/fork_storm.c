// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * fork_storm [WIDTH [DEPTH]], 6 and 3 without arguments: a tree of processes in which each forks WIDTH
 * children, DEPTH levels deep, all at once. Each process makes above start-up of the one program
 *
 *   malloc: 10 calls, 330 bytes
 *
 * Prints the number of processes, exit status 0.
 */
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

static int grow(unsigned long width, unsigned long depth)
{
	unsigned long total = 0;
	int status;

	for (int i = 0; i < 10; i++)
		sink = malloc(33);
	for (unsigned long i = 0; depth && i < width; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			_exit(grow(width, depth - 1));
	}
	while (wait(&status) > 0)
		total += status != 0;
	return total != 0;
}

int main(int argc, char **argv)
{
	unsigned long width = number_or(argc > 1 ? argv[1] : NULL, 6);
	unsigned long depth = number_or(argc > 2 ? argv[2] : NULL, 3);
	unsigned long total = 0, level = 1;

	if (grow(width, depth))
		return 1;
	for (unsigned long i = 0; i <= depth; i++, level *= width)
		total += level;
	say_number("", total, " processes\n");
	return 0;
}
