/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packs the ELF files from which a profile's names come, for another machine. */
#ifndef ALLOCPROF_PROFILE_ARCHIVE_H
#define ALLOCPROF_PROFILE_ARCHIVE_H

#include <linux/types.h>
#include <stddef.h>

struct error;
struct profile;

struct profile_archive_options {
	const char *const *debug_dirs; /* as for module_file__open() */
	size_t n_debug_dirs;
	const char *
		/* The profile's data file, packed under its name; NULL: it is not packed. */
		data_path;
	/* Called for each module whose file, or whose debug file, is not packed, with a reason
	 * that names the module. */
	void (*missing)(const char *path, const char *why, void *context);
	void *context;
};

struct profile_archive_result {
	__u32 files;	  /* number of files, without the data file */
	__u64 size_bytes; /* of the packed files */
	__u32 missing;
};

/*
 * Writes a gzip-compressed tar file to @path, atomically unless that is a pipe, a device or an
 * open file, to which it writes directly. It has the data file; each module's file as
 * .build-id/ab/cdef...; its debug file as .build-id/ab/cdef....debug; files without a build id by
 * path; and their debug files by the path of their module with .debug appended. Unpacked, it is a
 * directory for --debug-dir. Returns 0 or a negative errno with @error set.
 */
int profile__archive(const struct profile *profile, const struct profile_archive_options *options,
		     const char *path, struct profile_archive_result *result, struct error *error);

#endif
