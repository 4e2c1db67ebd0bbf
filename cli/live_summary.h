/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines that end `record --live`. */
#ifndef ALLOCPROF_LIVE_SUMMARY_H
#define ALLOCPROF_LIVE_SUMMARY_H

#include <linux/types.h>
#include <stdbool.h>

struct selection;
struct live_totals;

/*
 * Prints three lines on stderr: allocations, live blocks, temporary ones. @totals: of a sampled
 * profile, else NULL. @unseen: profile__unseen_bytes() of it. @target_runs: the target is still running.
 */
void live_summary__print(const struct live_totals *live, const struct selection *totals,
			 __u64 unseen, bool target_runs);

#endif
