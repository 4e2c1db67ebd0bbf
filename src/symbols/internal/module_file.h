/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ELF file that a recording's module was, found again by its build id. */
#ifndef ALLOCPROF_MODULE_FILE_H
#define ALLOCPROF_MODULE_FILE_H

struct error;
struct profile_module;

/*
 * Opens for reading the file that @module was mapped from: DIR/.build-id/ab/cdef... or DIR/<path> of
 * one of @debug_dirs (ends with NULL, may be NULL), or its own path. The file descriptor is the
 * caller's. -ENOENT where there is none, -EINVAL where what is there has another build id, or another
 * negative errno; @error says which.
 */
int module_file__open(const struct profile_module *module, const char *const *debug_dirs,
		      struct error *error);

/* The name of @build_id's file below a .build-id directory, "ab/cdef...", to be freed. NULL without
 * memory or where it is too short to have one. */
char *module_file__build_id_name(const char *build_id);

#endif
