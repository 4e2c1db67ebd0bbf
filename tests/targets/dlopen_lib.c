// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * dlopen_lib LIBRARY [TIMES]: loads and unloads LIBRARY, once without TIMES. Above start-up what the
 * library's constructor and destructor allocate, and what dlopen and dlclose themselves need.
 * Prints "done", exit status 0.
 */
#include <dlfcn.h>
#include "raw.h"

DEFINE_SINK;

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	for (unsigned long n = number_or(argc > 2 ? argv[2] : NULL, 1); n; n--) {
		void *library = dlopen(argv[1], RTLD_NOW);

		if (!library || dlclose(library))
			return 1;
	}
	say("done\n");
	return 0;
}
