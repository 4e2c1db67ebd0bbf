// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the library's file, beside the tool as it was built or installed. */
#include "preload_library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "error.h"
#include "inside_abi.h"

/* From the directory of the tool: as installed, wherever that was moved to, and as built. */
static const char *const places[] = {
	"/" ALLOCPROF_LIBRARY_FROM_TOOL "/" INSIDE_FILE,
	"/../src/inside/" INSIDE_FILE,
};

int preload_library__find(char path[PATH_MAX], struct error *error)
{
	char directory[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	char *slash;

	if (length < 0)
		return error__set(error, -errno, "cannot find this program's file: %s",
				  strerror(errno));
	directory[length] = 0;
	slash = strrchr(directory, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (snprintf(path, PATH_MAX, "%s%s", directory, places[i]) < PATH_MAX &&
		    !access(path, R_OK))
			return 0;
	return error__set(error, -ENOENT,
			  "cannot find " INSIDE_FILE ", which --engine=preload loads into "
			  "the command: install allocprof anew, on x86-64");
}
