/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the free chunks of glibc's malloc that look as if they were in use: it keeps some in lists
 * for the next request of their size, without a word in the chunks around them. */
#ifndef ALLOCPROF_HEAP_LISTS_H
#define ALLOCPROF_HEAP_LISTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "reach_roots.h"

struct heap_lists {
	const struct reach_ranges *ranges;
	int memory;
	__u64 *chunks; /* addresses of the headers of chunks in the lists, ascending */
	size_t n, room, most;
	__u64 key; /* in the second word of each chunk in a tcache; 0: not known yet */
	int n_tries;
};

/* Reads the fastbins of the arenas, from glibc 2.32 on, and the tcaches of the threads, of glibc 2.34
 * to 2.41. @memory: /proc/PID/mem; both are used until heap_lists__release(). Returns 0 or -ENOMEM. */
int heap_lists__read(const struct reach_roots *roots, int memory, struct heap_lists *out);
void heap_lists__release(struct heap_lists *lists);

/* Returns whether the chunk with its header at @address is in one of the lists. */
bool heap_lists__has(const struct heap_lists *lists, __u64 address);

#endif
