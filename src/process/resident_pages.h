/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads which pages of a process are resident, and of which mappings they are. */
#ifndef ALLOCPROF_RESIDENT_PAGES_H
#define ALLOCPROF_RESIDENT_PAGES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "memory_mappings.h"

/* Recordings count pages of this size; resident memory of a kernel with larger ones is not read. */
#define RESIDENT_PAGE_BYTES 4096

/* Resident pages that adjoin and are alike. */
struct memory_run {
	__u64 begin, end; /* addresses, of one mapping */
	__u32 mapping;	  /* index of the mapping */
	bool is_of_file;  /* the pages are a file's, or shared memory's */
	bool is_shared; /* anonymous pages that another process has mapped, too, as after fork(2) */
};

struct resident_pages {
	struct memory_mappings of;
	struct memory_run *runs; /* by ascending address, as the mappings are */
	size_t n_runs, runs_room;
	__u64 highest_bytes; /* the most resident memory that the process ever had; 0: unknown */
};

/*
 * Reads the memory of @pid, whose threads should stand still: what changes meanwhile may be in one
 * part of the result and not in another. Runs of a mapping add up to its rss_bytes, or less where
 * pages came or went between. Returns 0, -ENOMEM, or a negative errno if /proc/PID cannot be read;
 * -EPERM and -EACCES if this process may not.
 */
int resident_pages__read(pid_t pid, struct resident_pages *out);
void resident_pages__release(struct resident_pages *memory);

#endif
