// SPDX-License-Identifier: GPL-3.0-or-later
#include "translator.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "error.h"
#include "path.h"

static bool has_name_of_one(const char *path)
{
	/*
	 * valgrind(1) and its tools, in a directory of its own; DynamoRIO; Pin; qemu's user mode.
	 */
	static const char *const names[] = {
		"valgrind", "valgrind.bin", "drrun", "pin", "qemu-x86_64", "qemu-x86_64-static",
	};
	const char *name = path__name(path);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return strstr(path, "/libexec/valgrind/") || strstr(path, "/lib/valgrind/");
}

int translator__refuse(const char *path, struct error *error)
{
	if (!has_name_of_one(path))
		return 0;
	return error__set(
		error, -ENOTSUP,
		"%s runs copies of its program's code, which would end at the first probe; "
		"measure the program without it",
		path);
}

int translator__refuse_process(int pid, struct error *error)
{
	char link[64], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = '\0';
	return translator__refuse(path, error);
}
