/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The line on stderr that ends a recording. */
#ifndef ALLOCPROF_RECORD_SUMMARY_H
#define ALLOCPROF_RECORD_SUMMARY_H

#include <linux/types.h>
#include <stdbool.h>

struct live_totals;
struct profile;
struct selection;

/* Prints how many calls @profile has, and @path; @totals are the sums of all its counts. */
void record_summary__print(const struct profile *profile, const struct selection *totals,
			   const char *path);
/* Prints what the log at @path has, if there is one. */
void record_summary__print_log(const struct profile *profile, const char *path);
/* Prints what it lacks, if anything. */
void record_summary__print_lost_events(const struct profile *profile, const char *path);
/* The same for several runs; @what describes them. */
void record_summary__print_runs(const char *what, const char *path);

/*
 * Prints three lines on stderr: allocations, live blocks, temporary ones. @totals: of a sampled
 * profile, else NULL. @unseen: profile__unseen_bytes() of it. @target_runs: the target is still running.
 */
void live_summary__print(const struct live_totals *live, const struct selection *totals,
			 __u64 unseen, bool target_runs);

#endif
