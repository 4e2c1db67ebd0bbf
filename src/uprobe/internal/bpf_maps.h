/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads and writes the maps of the BPF programs. */
#ifndef ALLOCPROF_BPF_MAPS_H
#define ALLOCPROF_BPF_MAPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "unwind_tables.h"

/* Reads the BPF programs' counters, and counts failed readings: sums with such a reading are
 * incomplete. */

struct bpf_program;

struct counters {
	int n_cpus;    /* possible CPUs */
	__u64 unread;  /* counters that could not be read */
	__u64 refused; /* for tests: how many of the next readings fail */
};

/* Returns a negative errno if the number of possible CPUs is unknown. */
int counters__init(struct counters *counters);

/* Sums the @n numbers of a per-CPU map's value over all CPUs: those of @key in map @fd go to @sums.
 * If the reading fails, @sums are zeros and @unread grows. */
void counters__sum(struct counters *counters, int fd, const void *key, __u64 *sums, size_t n);

/* Returns how many runs of the program the kernel skipped because the program was already running
 * on that CPU; 0 if the program is not loaded. */
__u64 counters__recursion_misses(struct counters *counters, const struct bpf_program *program);

/* Reads all entries of a BPF hash map, some thousand per bpf(2) call. */

/* Called for each entry. A result other than 0 ends the reading and is returned to the caller. */
typedef int map_batch_use(void *context, const void *key, const void *value);

/* Reads map @fd. @takes: also deletes the entries. Entries that programs insert meanwhile may be
 * missed. Returns 0, the result of @use, or a negative errno. */
int map_batch__each(int fd, size_t key_bytes, size_t value_bytes, bool takes, map_batch_use *use,
		    void *context);

/* Puts maps into the programs' maps of maps. */

/* Each update of a map of maps waits for an RCU grace period. Updates that are handed to a struct
 * slots wait side by side, in threads, until slots__wait(). */
struct slots;

/* Returns NULL if there is no memory. */
struct slots *slots__new(void);
void slots__free(struct slots *slots);

/* Puts the maps @fds, which stay open, into the slots from @first on of the map @map_fd. They are
 * there when slots__wait() returns or, if @slots is NULL, when this returns. Fails with -ENOMEM,
 * or an errno of bpf(2). */
int slots__set(struct slots *slots, int map_fd, __u32 first, const int *fds, __u32 n);

/* Waits until all maps are in their slots, as they must be before programs look for them. Returns
 * 0 or the first error of an update. */
int slots__wait(struct slots *slots);

/* The programs' counters by stack: two maps that take turns, since a counter that a program can
 * reach is never deleted. */

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

/* Returns whether the counters should be drained. */
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

/* Writes unwind tables into the programs' maps. */

/* The maps of bpf/walk.bpf.h. */
struct unwind_maps_fds {
	int chunks, tables, slices, rules;
};

/* Returns NULL if there is no memory. */
struct unwind_tables *unwind_maps__new(const struct unwind_maps_fds *fds);

#endif
