/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Works out the rows of `allocprof top`: what changes from one copy of a recording to the next. */
#ifndef ALLOCPROF_TOP_H
#define ALLOCPROF_TOP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "selection.h"

struct profile;
struct stack_groups;

/* Kinds of rows. */
enum top_by {
	TOP_BY_FUNCTION, /* to which stacks are charged (charges.h) */
	TOP_BY_STACK,
	TOP_BY_THREAD, /* threads of one name of a process */
	TOP_BY_PROCESS,
	TOP_BYS,
};

/* Numbers of a row, by which rows can be sorted. */
enum top_column {
	TOP_CALLS, /* blocks that were allocated: a second, or since the mark */
	TOP_BYTES,
	TOP_LIVE, /* bytes, of processes that have not ended */
	TOP_GROWTH,
	TOP_PEAK, /* bytes of it at the peak of all memory since the recording began */
	TOP_COLUMNS,
};

#define TOP_MINUTE_NS (60 * 1000000000ULL)

/* Numbers of the counts of one copy, or of what is common to some of them. */
struct top_numbers {
	__u64 calls, size_bytes; /* since the recording began */
	__u64 live_bytes, peak_bytes;
};

/* The numbers of one count, which is known by @key in all copies. */
struct top_count {
	__u64 key;
	struct top_numbers numbers;
};

/* A copy's counts, sorted by key, but for those whose numbers are all 0. */
struct top_copy {
	__u64 time_ns; /* of the recording */
	struct top_count *counts;
	size_t n;
};

/* The live bytes of one count of an earlier copy, for growth. */
struct top_live {
	__u64 key, bytes;
};

struct top_past {
	__u64 time_ns;	       /* of the recording */
	struct top_live *live; /* of the counts that have any, sorted by key */
	size_t n;
};

/* Copies that are kept for the last minute, one for each so many seconds. */
#define TOP_KEPT    13
#define TOP_KEEP_NS (TOP_MINUTE_NS / (TOP_KEPT - 1))

/* The copies of one recording. Zeroed it has none. */
struct top {
	__u64 seed;
	size_t n_copies; /* that were added */
	struct top_copy last, before_last;
	struct top_copy mark;		/* since which totals count; empty: the beginning */
	struct top_past kept[TOP_KEPT]; /* oldest first */
	size_t n_kept;
	/* By the last copy's count's id - 1: its key and its numbers. */
	struct top_count *by_id;
	size_t n_by_id;
	__u64 ended_ns; /* until when processes have ended before the last copy in which any ran */
};

/*
 * Adds the next copy of the recording, which has gone on for @time_ns. Processes that have ended have nothing live; but with
 * @has_ended the recording is over, and the last of them have what they left. Returns 0 or -ENOMEM.
 */
int top__add(struct top *top, const struct profile *profile, __u64 time_ns, bool has_ended);
/* Has totals count from the last copy on. Returns 0 or -ENOMEM. */
int top__mark(struct top *top);
void top__release(struct top *top);

/* Returns how long before the last copy the one was with which growth is compared. */
__u64 top__growth_span_ns(const struct top *top);
/* Returns the time of the recording since the mark. */
__u64 top__mark_span_ns(const struct top *top);

struct top_row {
	__u64 key;   /* the same in all copies */
	__u32 group; /* of a stack: its group */
	__u32 label; /* of a function: its label */
	__u32 depth; /* of a stack: how many frames are further inside than the one it is charged to */
	__u32 process, thread;
	enum ap_function function;	       /* of the allocator, of a stack */
	struct top_numbers now, rated, marked; /* now, and in the earlier copies */
	__u64 minute_bytes;		       /* live, in the earlier copy for growth */
	double values[TOP_COLUMNS];
};

/* Rows of one kind, in descending order. */
struct top_rows {
	enum top_by by;
	struct top_row *rows;
	size_t n;
	struct top_row total; /* of all rows */
};

/* Selects counts: those of the rows with that key. */
struct top_scope {
	bool is_given;
	enum top_by by;
	__u64 key;
};

struct top_wish {
	enum top_by by;
	enum top_column sort;
	bool since_mark; /* calls and bytes, and growth, since the mark, instead of by time */
	/* Nested: all of them must hold. */
	struct top_scope scopes[TOP_BYS];
};

/*
 * Adds up the counts of @profile, which is the last copy, that have any blocks in @selected (by
 * count's id - 1). The caller releases @rows. Returns 0 or -ENOMEM.
 */
int top__add_up(const struct top *top, const struct profile *profile,
		const struct stack_groups *groups, const struct selection *selected,
		const struct top_wish *wish, struct top_rows *rows);
void top_rows__release(struct top_rows *rows);

#endif
