// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * group_signal NUMBER: sends the signal to its process group once, waits until its parent, which is in the group, has taken
 * it, and prints how often it came here: "seen 1". Exit status 3.
 *
 *   malloc: 1 call, 10 bytes
 */
#include <signal.h>
#include <stdio.h>
#include "raw.h"

DEFINE_SINK;

static volatile sig_atomic_t n_seen;

static void note(int signal)
{
	n_seen++;
}

/* Whether the parent has the signal pending. */
static int is_pending(int number)
{
	unsigned long mask = 0, pending = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", getppid());
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "ShdPnd: %lx", &mask) == 1)
			pending |= mask;
	if (file)
		fclose(file);
	return pending >> (number - 1) & 1;
}

int main(int argc, char **argv)
{
	int number = number_or(argc > 1 ? argv[1] : NULL, SIGTERM);

	signal(number, note);
	sink = malloc(10);
	kill(0, number);
	while (is_pending(number))
		usleep(1000);
	usleep(20000);
	say_number("seen ", n_seen, "\n");
	return 3;
}
