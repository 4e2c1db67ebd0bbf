/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PATH_H
#define ALLOCPROF_PATH_H

#include <string.h>

/* The part of @path after its last slash. */
static inline const char *path__name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
