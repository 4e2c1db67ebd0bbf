/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mapped ranges of an address space, sorted and without overlaps: a treap, so that each
 * operation takes logarithmic time, whatever a program maps. */
#ifndef ALLOCPROF_MAPPING_RANGES_H
#define ALLOCPROF_MAPPING_RANGES_H

#include <linux/types.h>
#include <stdbool.h>

struct mapping_range {
	__u64 begin, end;
	/* When it came to this address, by CLOCK_MONOTONIC. */
	__u64 placed_ns;
	__u32 origin;	 /* the owner's number; ranges of one origin may be anywhere */
	__u8 protection; /* PROT_ of mman.h */
	bool was_executable;
	bool was_given_back; /* by madvise(2); it may have been touched since */
};

struct mapping_node;

/* Zeroed it is empty. */
struct mapping_ranges {
	struct mapping_node *root;
	__u64 random; /* state of the generator of priorities */
};

void mapping_ranges__release(struct mapping_ranges *ranges);

/* Adds @range, which must overlap no other; it is joined with neighbours that are equal in all but
 * their addresses. Fails with -ENOMEM. */
int mapping_ranges__add(struct mapping_ranges *ranges, const struct mapping_range *range);

/* Moves what lies in [@begin, @end), also parts of ranges, to @taken, which must be empty. Fails
 * with -ENOMEM. */
int mapping_ranges__take(struct mapping_ranges *ranges, __u64 begin, __u64 end,
			 struct mapping_ranges *taken);

/* Returns the first range that ends after @address, or NULL. */
const struct mapping_range *mapping_ranges__from(const struct mapping_ranges *ranges,
						 __u64 address);

#endif
