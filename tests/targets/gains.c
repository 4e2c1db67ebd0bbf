// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Executes a program that may have more privileges: this one itself makes no call of an allocator.
 *
 *   gains MICROSECONDS PROGRAM [ARGUMENT...]: executes it after that time.
 *   gains each N PROGRAM [ARGUMENT...]: does so in N processes, one after the other, and waits for each.
 *   gains spend MILLISECONDS: calls malloc and free for that long, however often; a privileged copy is what is executed.
 *   gains once: calls malloc once, and free once.
 */
#include <sys/wait.h>
#include <time.h>
#include "raw.h"

DEFINE_SINK;

static unsigned long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000UL + now.tv_nsec / 1000;
}

static void allocate(void)
{
	sink = malloc(24);
	free((void *)sink);
}

static int spawn_each(unsigned long n, char **argv)
{
	for (; n; n--) {
		pid_t child = fork();

		if (!child) {
			execv(argv[0], argv);
			_exit(101);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return 102;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long start = now_us();

	if (argc < 2)
		return 100;
	if (!strcmp(argv[1], "once")) {
		allocate();
		return 0;
	}
	if (!strcmp(argv[1], "spend") && argc > 2) {
		while (now_us() - start < 1000 * number_or(argv[2], 0))
			allocate();
		return 0;
	}
	if (!strcmp(argv[1], "each") && argc > 3)
		return spawn_each(number_or(argv[2], 0), argv + 3);
	while (now_us() - start < number_or(argv[1], 0))
		;
	execv(argv[2], argv + 2);
	return 101;
}
