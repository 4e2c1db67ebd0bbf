/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A worker finds the installed files that have the debug information of an ELF file. */
#ifndef ALLOCPROF_INSTALLED_DEBUG_H
#define ALLOCPROF_INSTALLED_DEBUG_H

#include <stddef.h>

#include "debug_file.h"

struct parser;
struct profile_module;

struct installed_debug {
	char *path;	/* the separate debug file; NULL: none is installed, or none is needed */
	char *alt_path; /* dwz's file that the debug information refers to; NULL: none */
	char alt_build_id[BUILD_ID_SIZE]; /* lower-case hex */
};

/*
 * Finds the files of @module, whose ELF file is @fd, which stays the caller's. @dirs are searched first. 0, with @out
 * released by the caller; -ECHILD: the file could not be read safely; or another negative errno; each with @error set,
 * which says that it is about the debug files of @module.
 */
int installed_debug__find(struct parser *parser, int fd, const struct profile_module *module,
			  const char *const *dirs, size_t n_dirs, struct installed_debug *out,
			  struct error *error);

/* Accepts a zeroed one. */
void installed_debug__release(struct installed_debug *debug);

#endif
