/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells when a copy of the recording is to be written because the target's memory has reached a
 * limit (record --dump-at). */
#ifndef ALLOCPROF_DUMP_LIMITS_H
#define ALLOCPROF_DUMP_LIMITS_H

#include <linux/types.h>
#include <stdbool.h>

struct error;
struct session_use;

#define DUMP_LIMITS_MAX 16
#define DUMP_LIMIT_TEXT 64
/* The time of growth=SIZE/TIME is split into so many parts. */
#define DUMP_LIMIT_PARTS 64

enum dump_limit_kind {
	DUMP_AT_RSS,	/* resident memory of all measured processes */
	DUMP_AT_LIVE,	/* live bytes */
	DUMP_AT_GROWTH, /* resident memory that came within a time */
	DUMP_AT_GROUP,	/* share of its control group's limit that the group uses */
	DUMP_AT_OOM,	/* the kernel has killed a process of the group */
	DUMP_AT_SIGNAL, /* allocprof has got a signal */
	DUMP_AT_PEAK,	/* resident memory is higher than ever: is_peak() of controlled.c */
};

struct dump_limit {
	enum dump_limit_kind kind;
	char text[DUMP_LIMIT_TEXT]; /* as it was given */
	__u64 bytes;
	double share;	   /* of DUMP_AT_GROUP */
	__u64 window_ns;   /* of DUMP_AT_GROWTH */
	int signal_number; /* of DUMP_AT_SIGNAL */
	/* State: whether the limit was reached and has not been left since, or the last count. */
	bool is_over;
	__u64 count;
	/* The least resident memory in each part of the time, the oldest at part_index, and when a
	 * part began. */
	__u64 least[DUMP_LIMIT_PARTS], begins_ns[DUMP_LIMIT_PARTS];
	unsigned int part_index, n_parts;
};

struct dump_limits {
	struct dump_limit limits[DUMP_LIMITS_MAX];
	unsigned int n;
};

/* Adds limits, which @text separates by commas. Returns 0, or -EINVAL with @error set. */
int dump_limits__parse(struct dump_limits *limits, const char *text, struct error *error);

/* Returns whether one of them is of that kind. */
bool dump_limits__has(const struct dump_limits *limits, enum dump_limit_kind kind);

/* The texts of limits, with commas between. */
#define DUMP_LIMITS_TEXT (DUMP_LIMITS_MAX * DUMP_LIMIT_TEXT)

/*
 * Adds the limits to @text that @use has reached since the last call, those that are there left
 * out. A limit is reached again only after the memory was a tenth below it; with DUMP_AT_GROWTH,
 * when it has grown by as much again. @now_ns: CLOCK_MONOTONIC.
 */
void dump_limits__add_reached(struct dump_limits *limits, const struct session_use *use,
			      __u64 now_ns, char text[DUMP_LIMITS_TEXT]);

/* Parses "rss=SIZE" of --begin-at. Returns 0, or -EINVAL with @error set. */
int dump_limits__parse_begin(const char *text, __u64 *rss_bytes, struct error *error);

#endif
