/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines on stderr that end a recording. */
#ifndef ALLOCPROF_RECORD_SUMMARY_H
#define ALLOCPROF_RECORD_SUMMARY_H

#include <linux/types.h>
#include <stdbool.h>

struct live_totals;
struct profile;
struct selection;

/* Returns the sums of all counts of the profile. */
struct selection record_summary__sum(const struct profile *profile);

/* Prints the number of calls in @profile, and the file name @path; @totals are the sums of all its
 * counts. */
void record_summary__print(const struct profile *profile, const struct selection *totals,
			   const char *path);
/* Prints what the log of events at @path contains, if there is one. */
void record_summary__print_log(const struct profile *profile, const char *path);
/* Prints what that log lacks, if anything. */
void record_summary__print_lost_events(const struct profile *profile, const char *path);
/* Prints the file name @path of several runs; @what describes them. */
void record_summary__print_runs(const char *what, const char *path);

/*
 * Prints three lines on stderr: allocations, live blocks, temporary blocks. @totals is set for a
 * sampled profile, else NULL; @unseen is its profile__unseen_bytes(). @target_runs says that the
 * target is still running.
 */
void live_summary__print(const struct live_totals *live, const struct selection *totals,
			 __u64 unseen, bool target_runs);

#endif
