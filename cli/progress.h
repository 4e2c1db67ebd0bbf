/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One line on a terminal for what takes more than a second; nothing anywhere else. */
#ifndef ALLOCPROF_PROGRESS_H
#define ALLOCPROF_PROGRESS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct progress {
	__u64 start_ns, shown_ns; /* CLOCK_MONOTONIC */
	bool on;		  /* stderr is a terminal */
	bool shown;
};

void progress__begin(struct progress *progress);
/* "@what: @done of @total", at most ten times a second. */
void progress__show(struct progress *progress, const char *what, size_t done, size_t total);
/* Takes the line away. */
void progress__end(struct progress *progress);

#endif
