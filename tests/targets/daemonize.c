// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * daemonize IN OUT: starts a daemon by forking twice, and ends with status 6 once that runs. The
 * daemon, in a session of its own and without the standard streams, obeys the words that come by the
 * FIFO IN as sleeper does, answering by OUT. Above start-up:
 *
 *   malloc: 8 calls, 320 bytes
 *
 * before the parent ends, 5 of them by the daemon. Prints the daemon's process id.
 */
#include <fcntl.h>
#include "raw.h"

DEFINE_SINK;

static void serve(const char *in_path, const char *out_path, int ready)
{
	char line[64];

	setsid();
	for (int i = 0; i < 5; i++)
		sink = malloc(40);
	say_number("", (unsigned long)getpid(), "\n");
	close(0);
	close(1);
	close(2);
	write(ready, "x", 1);
	close(ready);
	/* In order: 0 for words, 1 for answers. */
	open(in_path, O_RDWR);
	open(out_path, O_RDWR);
	while (read_line(line, sizeof(line))) {
		if (!strncmp(line, "alloc ", 6)) {
			for (unsigned long n = number_or(line + 6, 0); n; n--) {
				sink = malloc(32);
				free(sink);
			}
		} else {
			_exit(0);
		}
		say("done\n");
	}
	_exit(2);
}

int main(int argc, char **argv)
{
	int ready[2];
	char c;

	if (argc != 3 || pipe(ready))
		return 2;
	for (int i = 0; i < 3; i++)
		sink = malloc(40);
	if (!fork()) {
		if (!fork()) {
			close(ready[0]);
			serve(argv[1], argv[2], ready[1]);
		}
		_exit(0);
	}
	close(ready[1]);
	return read(ready[0], &c, 1) == 1 ? 6 : 1;
}
