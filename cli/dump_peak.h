/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells when a copy of the recording is to be written because the target has more resident memory than
 * before (record --dump-at=peak). */
#ifndef ALLOCPROF_DUMP_PEAK_H
#define ALLOCPROF_DUMP_PEAK_H

#include <linux/types.h>
#include <stdbool.h>

/* Copies at new highs of resident memory, each of which replaces the one before. Zeroed except for
 * @path there is none yet. */
struct dump_peak {
	const char *path;	      /* NULL: none are to be written */
	__u64 most_bytes, last_bytes; /* resident memory: the highest, and at the last look */
	__u64 copied_bytes;	      /* of the last copy that was begun */
	__u64 written_bytes;	      /* of the last copy that was written */
	__u64 begin_ns, due_ns;	      /* CLOCK_MONOTONIC */
	__u64 held_ns;		      /* for how long the target was held at most */
	bool is_written, was_given_up;
	char why_not[128]; /* why the last copy could not be written */
};

/* Notes the resident memory that a look has found. */
void dump_peak__note(struct dump_peak *peak, __u64 rss_bytes);

/* Returns whether a copy is due. @is_writing: one is being written, and is given up then. */
bool dump_peak__is_due(struct dump_peak *peak, __u64 rss_bytes, bool is_writing);

/* To be called when a copy is begun, at the moment of which it is. */
void dump_peak__begin(struct dump_peak *peak, __u64 rss_bytes);
/* To be called when it was written, or could not be: then @said has the reason. */
void dump_peak__end(struct dump_peak *peak, bool is_written, const char *said);

/* Says by how much the last copy is off, unless @is_quiet, or why there is none. */
void dump_peak__report(const struct dump_peak *peak, bool is_quiet);

#endif
