/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The programs' counters by stack: two maps that take turns, since a counter that a program can
 * reach is never deleted. */
#ifndef ALLOCPROF_COUNT_MAPS_H
#define ALLOCPROF_COUNT_MAPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct collector;

struct count_maps {
	int current_fd;	 /* map of maps with the current one of the two below */
	int fds[2];	 /* programs start with the first */
	__u64 *inserted; /* the programs' counter of new keys since the maps were swapped */
	__u32 drain_at;	 /* number of new keys at which the counters are drained */
	int current;	 /* index of the map in use */
	bool wants_drain;
};

/* Notes a program's record that requests a drain, and ignores others. */
void count_maps__handle_record(struct count_maps *maps, const void *record, size_t size);

/* Whether the counters should be drained. */
bool count_maps__want_drain(const struct count_maps *maps);

/* Waits until every program that is running now has ended. 0 or a negative errno. */
int count_maps__wait_for_programs(const struct count_maps *maps);

/*
 * Move counters into the profile without losing any: begin_drain switches the programs to the other
 * map, and waits until no program uses the first one; then the caller empties the ring buffer, so
 * that the stacks of all counters are known; end_drain reads and empties the first map. 0 or a
 * negative errno.
 */
int count_maps__begin_drain(struct count_maps *maps);
int count_maps__end_drain(const struct count_maps *maps, struct collector *collector);

/* Moves the remaining counters; no program runs any more, and the ring buffer has been read. */
int count_maps__drain_all(const struct count_maps *maps, struct collector *collector);

#endif
