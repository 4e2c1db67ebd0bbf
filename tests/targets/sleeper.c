// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints "ready" and obeys commands on stdin:
 *
 *   alloc N   exactly N times malloc(32) and free, then prints "done"
 *   copied N  the same by a copy of malloc's address, which no relocation has made
 *   keep N    exactly N times malloc(48) without free, then prints "done"
 *   release N exactly N times free of what keep made last, of the last 1000 it made, then "done"
 *   exit      exit status 0, as at the end of the input
 *
 * Other than that it makes no call of the allocator after "ready".
 */
#include "raw.h"

DEFINE_SINK;

#define MAX_KEPT 1000

static void *kept[MAX_KEPT];
static unsigned long n_kept;

/* No relocation gives this word its value. */
static void *(*volatile copied_malloc)(size_t);

static void keep(void)
{
	sink = malloc(48);
	kept[n_kept++ % MAX_KEPT] = sink;
}

static void release(void)
{
	void **place = &kept[--n_kept % MAX_KEPT];

	if (!*place)
		_exit(2);
	free(*place);
	*place = NULL;
}

int main(void)
{
	char line[64];

	copied_malloc = malloc;
	say("ready\n");
	while (read_line(line, sizeof(line))) {
		if (!strncmp(line, "alloc ", 6)) {
			for (unsigned long n = number_or(line + 6, 0); n; n--) {
				sink = malloc(32);
				free(sink);
			}
		} else if (!strncmp(line, "copied ", 7)) {
			for (unsigned long n = number_or(line + 7, 0); n; n--) {
				sink = copied_malloc(32);
				free(sink);
			}
		} else if (!strncmp(line, "keep ", 5)) {
			for (unsigned long n = number_or(line + 5, 0); n; n--)
				keep();
		} else if (!strncmp(line, "release ", 8)) {
			for (unsigned long n = number_or(line + 8, 0); n; n--)
				release();
		} else if (!strcmp(line, "exit")) {
			break;
		} else {
			return 2;
		}
		say("done\n");
	}
	return 0;
}
