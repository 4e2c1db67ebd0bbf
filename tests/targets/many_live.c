// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * many_live N SIZE [wait]: makes N blocks of SIZE bytes and ends with all of them. Nothing else is
 * allocated: allocations=N bytes_allocated=N*SIZE live=N live_bytes=N*SIZE. Prints "done", and with a
 * third argument waits for the end of its input then. Exit status 0.
 */
#include "raw.h"

DEFINE_SINK;

int main(int argc, char **argv)
{
	unsigned long n = number_or(argc > 1 ? argv[1] : NULL, 0);
	unsigned long size = number_or(argc > 2 ? argv[2] : NULL, 0);
	char c;

	for (; n; n--) {
		sink = malloc(size);
		if (!sink)
			return 1;
	}
	say("done\n");
	while (argc > 3 && read(0, &c, 1) == 1)
		;
	return 0;
}
