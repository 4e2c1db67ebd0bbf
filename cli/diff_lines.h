/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where in the source the stacks of `allocprof diff` allocate. */
#ifndef ALLOCPROF_DIFF_LINES_H
#define ALLOCPROF_DIFF_LINES_H

#include "diff_output.h"

/* More are not told. */
#define DIFF_LINES_MOST 4

/* The lines of one frame of a stack, which may be several: it is one stack by its functions. */
struct diff_frame_lines {
	const char *texts[DIFF_LINES_MOST]; /* "(server.c:12)", borrowed from the output's views */
	size_t n;
	bool has_more;
};

/*
 * Lines of the @n frames @marks of @entry, which is not paired: as they are in AFTER, if it is there. 0
 * and *@lines to be freed, NULL where the output has none; or -ENOMEM.
 */
int diff_lines__of(const struct diff_output *output, const struct diff_entry *entry,
		   const struct diff_mark *marks, size_t n, struct diff_frame_lines **lines);

/* " (server.c:12, server.c:14)", or nothing. */
void diff_frame_lines__print(const struct diff_frame_lines *lines, const struct terminal *terminal);

#endif
