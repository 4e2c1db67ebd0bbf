/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's list of the process's mappings. */
#ifndef ALLOCPROF_INSIDE_MAPS_H
#define ALLOCPROF_INSIDE_MAPS_H

#include "inside_abi.h"
#include "sys.h"

struct mapping {
	__u64 start, end, offset, inode;
	__u32 device; /* major << 20 | minor */
	bool is_executable, is_readable;
	bool is_closed; /* it permits no access at all, as a guard page */
	char *path;	/* "" if it has none; cut off where it is longer than the room for it */
};

/* Finds the mapping around @address. @buffer is working memory, 4 KiB at best. @path, of
 * @path_bytes, receives out->path; NULL: it is not wanted. Fails with -ENOENT if nothing is mapped
 * from out->start to out->end. Another negative errno: /proc cannot be read. */
int maps__find(__u64 address, struct mapping *out, char *path, __u32 path_bytes, void *buffer,
	       __u32 size);

#endif
