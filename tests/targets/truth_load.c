// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * truth_load LIBRARY...: loads each of the libraries in turn, calls into it and unloads it, ten
 * times, so that one comes to be where another was. What it allocates is recorded by libtruth. Exit
 * status 0.
 */
#include <dlfcn.h>
#include "raw.h"

DEFINE_SINK;

static __attribute__((noinline)) void called_back(void)
{
	sink = malloc(4001);
	free(sink);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) int use(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY);
	void (*call)(void (*)(void));
	void (*chosen)(size_t);

	if (!library)
		return 1;
	call = dlsym(library, "truth_lib_call");
	chosen = dlsym(library, "truth_lib_chosen");
	if (!call || !chosen)
		return 1;
	call(called_back);
	chosen(4002);
	return dlclose(library);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 10; i++)
		for (int j = 1; j < argc; j++)
			if (use(argv[j]))
				return 1;
	say("done\n");
	return 0;
}
