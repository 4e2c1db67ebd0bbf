/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file behind a mapping of another process, opened while it can be, and no other file. */
#ifndef ALLOCPROF_MAPPED_FILE_H
#define ALLOCPROF_MAPPED_FILE_H

#include <linux/types.h>
#include <stddef.h>

#include "file_identity.h"

struct mapped_file {
	__u32 pid;
	__u64 start, end;	       /* where it is, or was, mapped */
	struct file_identity identity; /* by whichever source it is known */
	const char *path;	       /* as the process names it; NULL if unknown */
};

/*
 * Opens it for reading: what the process has mapped there, or, where that is gone or already another
 * file, what its path leads to, in the process's root or ours. *@identities: of the file that is open.
 * -ENOENT where none of these is it.
 */
int mapped_file__open(const struct mapped_file *file, const struct file_asker *asker,
		      struct file_identities *identities);

/* The path that @fd was opened by, deleted or not. Sets *@path to "" where the kernel does not say. */
void mapped_file__path(int fd, char *path, size_t size);

#endif
