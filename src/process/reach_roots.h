/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists where in a process pointers to blocks can begin: its registers, stacks, data, and all other
 * memory. */
#ifndef ALLOCPROF_REACH_ROOTS_H
#define ALLOCPROF_REACH_ROOTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct reach_range {
	__u64 begin, end; /* addresses */
	bool is_file;	  /* a private mapping of a file, in which only written pages matter */
	/* Only pointers to a block's beginning count: glibc's malloc has addresses of free memory
	 * in its data, which may be the last bytes of the block before it. */
	bool only_begins;
	bool is_c_library; /* data of a C library */
	bool is_heap;  /* of glibc's malloc, which has free memory and what no block is known of */
	bool is_arena; /* a heap that was mapped for an arena, and begins with its description */
};

struct reach_ranges {
	struct reach_range *ranges; /* by ascending address */
	size_t n, room;
};

/* Adds a range. Fails with -ENOMEM. */
int reach_ranges__add(struct reach_ranges *ranges, __u64 begin, __u64 end);
void reach_ranges__release(struct reach_ranges *ranges);

struct reach_roots {
	struct reach_ranges memory;
	struct reach_ranges files, code; /* mappings of files, and of these the executable ones */
	__u64 *words;			 /* contents of registers */
	size_t n_words, words_room;
	/* Addresses above which no thread-local variable of a thread is: of its data, or of the end
	 * of its stack if it is not among those that are given. */
	__u64 *threads;
	size_t n_threads, threads_room;
};

/*
 * Reads the roots of @pid. @tids: its threads, all of them stopped and traced by this process; of
 * other threads the whole stacks are roots. @own: memory of allocprof's in the process, which has
 * addresses of blocks; in any order, it gets sorted. Returns 0, -ENOMEM, -ESRCH, or a negative
 * errno of memory_mappings__read().
 */
int reach_roots__read(pid_t pid, const pid_t *tids, size_t n_tids, struct reach_ranges *own,
		      struct reach_roots *out);
void reach_roots__release(struct reach_roots *roots);

#endif
