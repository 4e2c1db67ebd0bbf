/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PATH_H
#define ALLOCPROF_PATH_H

#include <stdbool.h>
#include <string.h>

/* The part of @path after its last slash. */
static inline const char *path__name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns whether a part of @path is "..". */
static inline bool path__has_parent(const char *path)
{
	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		size_t size = strcspn(path, "/");

		if (size == 2 && !strncmp(path, "..", 2))
			return true;
		path += size;
	}
	return false;
}

#endif
