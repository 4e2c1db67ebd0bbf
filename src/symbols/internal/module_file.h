/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the ELF file of a recorded module by its build id. */
#ifndef ALLOCPROF_MODULE_FILE_H
#define ALLOCPROF_MODULE_FILE_H

struct error;
struct profile;
struct profile_module;

/*
 * Opens the file from which @module was mapped: DIR/.build-id/ab/cdef..., DIR/<path> or, with a
 * build id, DIR/<name> in @debug_dirs (ends with NULL, may be NULL), its path below the root
 * directory of a process of @profile that still runs, or its own path. The caller owns the
 * descriptor. Returns -ENOENT if there is none, -EINVAL if the build id differs, or another
 * negative errno, with @error set.
 */
int module_file__open(const struct profile *profile, const struct profile_module *module,
		      const char *const *debug_dirs, struct error *error);

/* Returns "ab/cdef...", the name of @build_id's file in a .build-id directory, which the caller
 * frees. Returns NULL if there is no memory or the id is too short. */
char *module_file__build_id_name(const char *build_id);

#endif
