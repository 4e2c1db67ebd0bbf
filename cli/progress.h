/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One line on a terminal for what takes more than two seconds; nothing anywhere else. */
#ifndef ALLOCPROF_PROGRESS_H
#define ALLOCPROF_PROGRESS_H

#include <linux/types.h>
#include <stdbool.h>

struct progress {
	__u64 start_ns; /* CLOCK_MONOTONIC */
};

void progress__begin(struct progress *progress);
/* Whether it is time for a line, twice a second at the most. */
bool progress__is_due(const struct progress *progress);
/* Draws any line over the last one, cut off at the width of the terminal. Not while allocprof is in the
 * background, or somebody else uses the terminal. */
void progress__draw(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool progress__is_shown(void);
/* Takes the line away. To be called before anything else is printed on standard error. */
void progress__clear(void);

/* Nothing is shown from now on, nor taken away. */
void progress__forbid(void);
/* @is_in_use is asked before each line whether somebody else may write to the terminal; NULL: nobody
 * does. */
void progress__share(bool (*is_in_use)(void *context), void *context);

#endif
