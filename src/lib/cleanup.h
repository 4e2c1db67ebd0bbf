/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_CLEANUP_H
#define ALLOCPROF_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Releases a variable when its scope ends: `_cleanup_(close_fd) int fd = open(...)`. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* Frees any pointer to malloc'ed memory, for _cleanup_. */
static inline void free_ptr(void *ptr)
{
	free(*(void **)ptr);
}

#endif
