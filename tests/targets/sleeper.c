// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints "ready" and obeys commands on stdin:
 *
 *   alloc N   exactly N times malloc(32) and free, then prints "done"
 *   keep N    exactly N times malloc(48) without free, then prints "done"
 *   exit      exit status 0, as at the end of the input
 *
 * Other than that it makes no call of the allocator after "ready".
 */
#include "raw.h"

DEFINE_SINK;

int main(void)
{
	char line[64];

	say("ready\n");
	while (read_line(line, sizeof(line))) {
		if (!strncmp(line, "alloc ", 6)) {
			for (unsigned long n = number_or(line + 6, 0); n; n--) {
				sink = malloc(32);
				free(sink);
			}
		} else if (!strncmp(line, "keep ", 5)) {
			for (unsigned long n = number_or(line + 5, 0); n; n--)
				sink = malloc(48);
		} else if (!strcmp(line, "exit")) {
			break;
		} else {
			return 2;
		}
		say("done\n");
	}
	return 0;
}
