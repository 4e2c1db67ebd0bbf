/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Indexes of a profile, for the files that implement profile.h. */
#ifndef ALLOCPROF_PROFILE_INTERNAL_H
#define ALLOCPROF_PROFILE_INTERNAL_H

#include "arena.h"
#include "hash_table.h"
#include "profile.h"

/* The tables map to index + 1 in the array of the same name. */
struct profile_index {
	__u64 seed;
	struct arena stack_frames; /* frames of all stacks, also those that were replaced */
	struct hash_table modules, threads, functions, files, frames, stacks, counts, meta, ledger,
		gaps;
	size_t modules_room, processes_room, threads_room, functions_room, files_room, frames_room,
		stacks_room, counts_room, samples_room, timeline_room, rss_room, rss_samples_room,
		marks_room, heaps_room, size_classes_room, mappings_room, meta_room, ledger_room,
		runs_room, gaps_room;
	size_t n_closed; /* how many of the first counts are in no table */
	/* Indexed by the count's id - 1: index + 1 in the profile's samples; 0: none. */
	__u32 *samples_of;
	size_t samples_of_room;
	/* Packed blocks of the counts, which take a tenth of a struct profile_blocks each. */
	unsigned char *blocks;
	size_t n_blocks, blocks_room; /* number of bytes */
	bool has_reach;		      /* it is known which live blocks can be reached */
	/* Packed lifetimes, which take a third of a struct profile_lifetime each. */
	unsigned char *lifetimes;
	size_t lifetimes_bytes, lifetimes_room;
	/* profile__free_stacks() notes here whether the sums over the stacks agreed. */
	bool is_without_stacks, ledger_adds_up, blocks_add_up;
};

/*
 * Appends @entry of @size bytes to *@array, which has *@n elements and room for *@room, and adds
 * its id, which is *@n then, to @table. Returns 0, or -ENOMEM with nothing changed.
 */
int profile_index__append(struct hash_table *table, __u64 hash, void *array, size_t *room,
			  size_t *n, const void *entry, size_t size);
/* Makes room in *@array for one element of @size bytes after @n. Returns 0 or -ENOMEM. */
int profile_index__reserve(void *array, size_t *room, size_t n, size_t size);

/* Copies the resident memory of processes, whose ids in @to ascend as in @from; 0: one is left out.
 * Returns 0 or -ENOMEM. */
int profile__copy_rss(struct profile *to, const struct profile *from, const __u32 *processes);
int profile__copy_heaps(struct profile *to, const struct profile *from, const __u32 *processes);

/* Copies live mappings, whose counts in @to are those of @counts; 0: one is left out. Returns 0 or
 * -ENOMEM. */
int profile__copy_mappings(struct profile *to, const struct profile *from, const __u32 *counts);

/* Called by profile__free(). */
void profile__free_gaps(struct profile *profile);
void profile__free_totals(struct profile *profile);

#endif
