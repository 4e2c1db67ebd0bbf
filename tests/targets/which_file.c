// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * which_first and which_second are this, built twice: code and data are the same, but what makes the
 * blocks is called first_makes in one and second_makes in the other. So are libwhich_first.so and
 * libwhich_second.so.
 *
 *   which_… make           makes a block of 1111 bytes, exit status 0
 *   which_… load LIBRARY   loads LIBRARY, which makes one of 2222, exit status 0
 *   which_…                prints "ready" and obeys commands on stdin, printing "done" after each:
 *     make, load LIBRARY   as above; the library stays
 *     again                lets the library make another
 *     unload               unloads it
 *     exit                 exit status 0, as at the end of the input
 */
#include <dlfcn.h>
#include "raw.h"

DEFINE_SINK;

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define MAKES	    JOIN(NAME, _makes)

static __attribute__((noinline)) void MAKES(void)
{
	sink = malloc(BYTES);
	free(sink);
	__asm__ volatile("" : : : "memory");
}

#ifdef LIBRARY
void which_again(void);

void which_again(void)
{
	MAKES();
	__asm__ volatile("" : : : "memory");
}
#else
static void *library;

static int again(void)
{
	void (*call)(void) = dlsym(library, "which_again");

	if (!call)
		return 1;
	call();
	return 0;
}

static int load(const char *path)
{
	library = dlopen(path, RTLD_NOW);
	return library ? again() : 1;
}

static int obey(const char *line)
{
	if (!strcmp(line, "make"))
		MAKES();
	else if (!strncmp(line, "load ", 5))
		return load(line + 5);
	else if (!strcmp(line, "again"))
		return again();
	else if (!strcmp(line, "unload"))
		return dlclose(library);
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	char line[512];

	if (argc == 3 && !strcmp(argv[1], "load"))
		return load(argv[2]);
	if (argc == 2)
		return obey(argv[1]);
	say("ready\n");
	while (read_line(line, sizeof(line)) && strcmp(line, "exit")) {
		int err = obey(line);

		if (err)
			return err;
		say("done\n");
	}
	return 0;
}
#endif
