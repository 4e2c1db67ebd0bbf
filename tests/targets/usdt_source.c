// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * usdt_source N [LIBRARY]: pool_work(N) of usdt_pool.c, of the LIBRARY that it loads first or of its own. Without N
 * prints "ready" and obeys commands on stdin:
 *
 *   work N        pool_work(N), then prints "done"
 *   load LIBRARY  from now on that of the library, which it loads, then prints "done"
 */
#include <dlfcn.h>
#include "raw.h"

void pool_work(unsigned long n);

static void (*work)(unsigned long n) = pool_work;

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW),
	     *found = library ? dlsym(library, "pool_work") : NULL;

	if (!found)
		_exit(2);
	memcpy(&work, &found, sizeof(work));
}

int main(int argc, char **argv)
{
	char line[512];

	if (argc > 2)
		load(argv[2]);
	if (argc > 1) {
		work(number_or(argv[1], 1));
		return 0;
	}
	say("ready\n");
	while (read_line(line, sizeof(line))) {
		if (!strncmp(line, "work ", 5))
			work(number_or(line + 5, 1));
		else if (!strncmp(line, "load ", 5))
			load(line + 5);
		else
			_exit(2);
		say("done\n");
	}
	return 0;
}
