/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The line on stderr that ends a recording: what it has, and what shows it. */
#ifndef ALLOCPROF_RECORD_SUMMARY_H
#define ALLOCPROF_RECORD_SUMMARY_H

struct profile;
struct selection;

/* Prints what @profile, written to @path, holds; @totals are the sums of all its counts. */
void record_summary__print(const struct profile *profile, const struct selection *totals,
			   const char *path);
/* The same of several runs, @what is known of them together. */
void record_summary__print_runs(const char *what, const char *path);

#endif
