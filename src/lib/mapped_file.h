/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the file that another process has mapped, and makes sure that it is that file. */
#ifndef ALLOCPROF_MAPPED_FILE_H
#define ALLOCPROF_MAPPED_FILE_H

#include <linux/types.h>
#include <stddef.h>

#include "file_identity.h"

struct mapped_file {
	__u32 pid;
	__u64 start, end;	       /* of the mapping, which may be gone */
	struct file_identity identity; /* from whichever source */
	const char *path;	       /* in the process's root; NULL if unknown */
};

/*
 * Opens it for reading: by /proc/PID/map_files or, if the mapping is gone or replaced, by the path
 * in the process's root or ours. *@identities: those of the opened file. -EACCES if one of these
 * may not be read, -ENOENT if none is the file.
 */
int mapped_file__open(const struct mapped_file *file, const struct file_identifier *identifier,
		      struct file_identities *identities);

/* The path by which @fd was opened, also of a deleted file. *@path is "" if the kernel does not
 * report one. */
void mapped_file__path(int fd, char *path, size_t size);

/* The path by which this process finds the file @fd, which another one knows as @path, perhaps in a root of its own; @path if
 * there is none. */
void mapped_file__own_path(int fd, const char *path, char *own, size_t size);

#endif
