/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single blocks of a recording and what became of them, by its event log. */
#ifndef ALLOCPROF_EVENT_BLOCKS_H
#define ALLOCPROF_EVENT_BLOCKS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct event_log_reader;
struct filter_options;
struct profile;
struct stack_groups;

enum block_fate {
	BLOCK_ALIVE,
	BLOCK_FREED,
	BLOCK_REALLOCATED,
	BLOCK_UNSEEN,	 /* its end was not seen: its address was returned again */
	BLOCK_DISCARDED, /* an exec ended its address space */
	BLOCK_FATES,
};

/* What one call returned. */
struct event_block {
	__u64 id; /* the log's, which realloc keeps */
	__u64 address, size_bytes;
	__u64 born_ns, died_ns; /* since the start; died_ns is 0 if it is alive */
	/* REALLOCATED: the block that took its place. */
	__u64 next_address, next_bytes;
	__u32 weight;		/* how many blocks it stands for, with --sample */
	__u32 count;		/* profile's count of the call */
	__u32 next_count;	/* REALLOCATED: of the call of realloc; 0: unknown */
	__u32 thread, ended_by; /* ids of the threads that allocated it and ended it; 0: unknown */
	__u32 ended_thread;	/* profile's thread, for the name of @ended_by; 0: unknown */
	__u8 fate;		/* enum block_fate */
	bool temporary;
};

enum block_sort {
	BLOCKS_LARGEST,
	BLOCKS_OLDEST,	/* allocated first */
	BLOCKS_LONGEST, /* those that lived longest */
	BLOCKS_SORTS,
};

struct event_blocks_options {
	struct filter_options *filter;
	bool has_address; /* only blocks that have the byte at @address */
	__u64 address;
	enum block_sort sort;
	size_t most; /* how many are kept, the first ones by @sort */
	/* Unless NULL, gets each selected block, in no order, and none is kept. It keeps at most @each_bytes of one, and
	 * returns 0 or -ENOMEM. */
	int (*each)(void *context, const struct event_block *block);
	void *context;
	size_t each_bytes;
};

/* Zeroed there are none. */
struct event_blocks {
	struct event_block *list; /* owned */
	size_t n;
	bool is_cut;		  /* more are selected than the list has */
	__u64 blocks, size_bytes; /* of all that are selected */
	__u64 logged;		  /* blocks of the log */
	__u64 unknown;		  /* of these, blocks whose calls the data file does not have */
};

const char *block_fate__name(enum block_fate fate);
const char *block_sort__name(enum block_sort sort);
/* Returns the order called @name, or -ENOENT. */
int block_sort__by_name(const char *name);

/* Reads @log, that of the recording @profile, to its end. What filter__apply() says of its parameters is so here.
 * Returns 0 or a negative errno with @error set; the caller releases *@out. */
int event_blocks__read(struct event_log_reader *log, const struct profile *profile,
		       const struct stack_groups *groups,
		       const struct event_blocks_options *options, struct event_blocks *out,
		       struct error *error);
void event_blocks__release(struct event_blocks *blocks);

#endif
