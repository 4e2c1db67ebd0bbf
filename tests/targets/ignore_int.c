// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Ignores SIGINT, prints "ready", waits for a line of input or its end, prints "done". Above
 * start-up:
 *
 *   malloc: 5 calls, 55 bytes
 *
 * 3 calls before "ready", 2 after the line. Exit status 5.
 */
#include <signal.h>
#include "raw.h"

DEFINE_SINK;

int main(void)
{
	char line[64];

	signal(SIGINT, SIG_IGN);
	for (int i = 0; i < 3; i++)
		sink = malloc(11);
	say("ready\n");
	read_line(line, sizeof(line));
	for (int i = 0; i < 2; i++)
		sink = malloc(11);
	say("done\n");
	return 5;
}
