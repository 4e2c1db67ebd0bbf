/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ELF files that a profile's names come from, packed for another machine. */
#ifndef ALLOCPROF_PROFILE_ARCHIVE_H
#define ALLOCPROF_PROFILE_ARCHIVE_H

#include <linux/types.h>
#include <stddef.h>

struct error;
struct profile;

struct profile_archive_options {
	const char *const *debug_dirs; /* as module_file__open()'s */
	size_t n_debug_dirs;
	/* Told of a module whose file is not packed, and why. */
	void (*missing)(const char *path, const char *why, void *context);
	void *context;
};

struct profile_archive_result {
	__u32 files;
	__u64 size_bytes; /* of these files */
	__u32 missing;
};

/*
 * Writes a tar file, compressed by gzip, to @path, whole or not at all: each module's file as
 * .build-id/ab/cdef..., its debug file as .build-id/ab/cdef....debug, and files without a build id by
 * their paths. Unpacked, it is a directory for --debug-dir. 0 or a negative errno with @error set.
 */
int profile__archive(const struct profile *profile, const struct profile_archive_options *options,
		     const char *path, struct profile_archive_result *result, struct error *error);

#endif
