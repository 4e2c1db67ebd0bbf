/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads which pages of a process are resident, and of which mappings they are. */
#ifndef ALLOCPROF_RESIDENT_PAGES_H
#define ALLOCPROF_RESIDENT_PAGES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RESIDENT_PAGE_BYTES 4096 /* x86-64; also the unit of pagemap, whatever a page's size is */

enum memory_kind {
	MEMORY_ANONYMOUS, /* private, and of no file */
	MEMORY_BREAK,	  /* what brk(2) has made, [heap] */
	MEMORY_ARENA,	  /* a heap that glibc's malloc has mapped for an arena */
	MEMORY_STACK,	  /* a thread's stack */
	MEMORY_FILE,	  /* private mapping of a file */
	MEMORY_DATA,	  /* pages of a program's data that no file has */
	MEMORY_SHARED,	  /* shared mapping, of a file or not */
	MEMORY_OWN,	  /* shared memory of src/inside, or its library */
};

struct memory_mapping {
	__u64 begin, end; /* addresses */
	__u64 rss_bytes;  /* Rss of smaps, at the time of reading */
	__u64 huge_bytes; /* bytes of these that are in transparent huge pages */
	enum memory_kind kind;
};

/* Resident pages that adjoin and are alike. */
struct memory_run {
	__u64 begin, end; /* addresses, of one mapping */
	__u32 mapping;	  /* index of the mapping */
	bool is_of_file;  /* the pages are a file's, or shared memory's */
	bool is_shared; /* anonymous pages that another process has mapped, too, as after fork(2) */
};

struct resident_pages {
	pid_t pid;
	struct memory_mapping *mappings; /* by ascending address, as the runs are */
	size_t n_mappings, mappings_room;
	struct memory_run *runs;
	size_t n_runs, runs_room;
	__u64 rss_bytes; /* sum of the mappings' */
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
