// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * preload_exec_libc FILE LIBRARY CMD [ARGS...]: what preload_exec does, as a program with a C library: into a
 * static one none can be preloaded, and then no exec of it is seen. Calls no function of the allocator.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT      4096
#define MAX_VARIABLES 4096

int main(int argc, char **argv)
{
	static char preload[MAX_TEXT], counter[MAX_TEXT], *environment[MAX_VARIABLES];
	size_t n = 0;

	if (argc < 4)
		return 127;
	snprintf(counter, sizeof(counter), "ALLOCPROF_COUNTER=%s", argv[1]);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", argv[2]);
	environment[n++] = counter;
	environment[n++] = preload;
	for (char **entry = environ; *entry && n + 1 < MAX_VARIABLES; entry++)
		if (strncmp(*entry, "LD_PRELOAD=", 11) != 0 &&
		    strncmp(*entry, "ALLOCPROF_COUNTER=", 18) != 0)
			environment[n++] = *entry;
	execvpe(argv[3], argv + 3, environment);
	return 127;
}
