/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads what the mappings of a process are for: an allocator, stacks, files, or others. */
#ifndef ALLOCPROF_MEMORY_MAPPINGS_H
#define ALLOCPROF_MEMORY_MAPPINGS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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
	__u64 rss_bytes;  /* Rss of smaps, at the time of reading; 0 if it was not read */
	__u64 huge_bytes; /* bytes of these that are in transparent huge pages */
	enum memory_kind kind;
	bool is_writable;
	bool is_main_stack; /* of the first thread, [stack] */
	bool is_guarded;    /* a small inaccessible mapping lies before it */
	bool is_code;	    /* an executable mapping of a file */
	bool is_device;	    /* of a device, or of the kernel: it is not read */
	bool is_c_library;  /* of a C library's file, or MEMORY_DATA of that library */
	bool is_glibc; /* MEMORY_ARENA, or MEMORY_BREAK that begins as glibc's malloc makes it */
	__u64 arena;   /* MEMORY_ARENA: address of its struct malloc_state */
};

/* All mappings of a process, by ascending address. */
struct memory_mappings {
	pid_t pid; /* 0: they were not read */
	struct memory_mapping *mappings;
	size_t n, room;
	__u64 rss_bytes;   /* sum of the mappings' */
	bool has_jemalloc; /* its library is mapped */
};

/*
 * Reads the mappings of @pid, whose threads should stand still; @with_rss: also what of them is
 * resident, for which the kernel visits all of their pages. Returns 0, -ENOMEM, or a negative errno
 * if /proc/PID cannot be read; -EPERM and -EACCES if this process may not.
 */
int memory_mappings__read(pid_t pid, bool with_rss, struct memory_mappings *out);
void memory_mappings__release(struct memory_mappings *memory);

/* Returns whether the path is that of glibc's libc. */
bool memory_mapping__is_c_library(const char *path);

#endif
