/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source lines of the stacks that `allocprof diff` prints. */
#ifndef ALLOCPROF_DIFF_LINES_H
#define ALLOCPROF_DIFF_LINES_H

#include "diff_output.h"

/* Further lines are not printed. */
#define DIFF_LINES_MOST 4

/* The source lines of one frame. There may be several, because stacks are compared by functions. */
struct diff_frame_lines {
	const char *texts[DIFF_LINES_MOST]; /* "(server.c:12)", borrowed from the output's views */
	size_t n;
	bool has_more;
};

/*
 * Lines of the @n frames @marks of @entry, an unpaired stack; taken from AFTER if it has the stack.
 * 0 with *@lines to be freed, NULL if the output has no lines; or -ENOMEM.
 */
int diff_lines__of(const struct diff_output *output, const struct diff_entry *entry,
		   const struct diff_mark *marks, size_t n, struct diff_frame_lines **lines);

/* Prints " (server.c:12, server.c:14)", or nothing. */
void diff_frame_lines__print(const struct diff_frame_lines *lines, const struct terminal *terminal);

#endif
