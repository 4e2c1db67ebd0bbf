/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several runs of one command in one profile. They share modules, frames and stacks; processes,
 * threads, counts, blocks, lifetimes and samples of the time line belong to one run each. Each run's clock begins at
 * 0. meta and ledger of each run are kept beside the totals.
 */
#ifndef ALLOCPROF_PROFILE_RUNS_H
#define ALLOCPROF_PROFILE_RUNS_H

#include <linux/types.h>

#include "profile.h"

struct error;
struct profile;

/* The largest number of runs that `record -r` takes. */
#define PROFILE_MAX_RUNS 10000

/* Returns the number of runs, at least 1. */
__u32 profile__n_runs(const struct profile *profile);
/* Returns the run of @count, from 1 to profile__n_runs(). */
__u32 profile__count_run(const struct profile *profile, const struct profile_count *count);
/* These functions work like profile__meta() and profile__ledger(), for @run alone. */
const char *profile__run_meta(const struct profile *profile, __u32 run, const char *key);
__u64 profile__run_ledger(const struct profile *profile, __u32 run, const char *name);

/* Returns the run with the highest peak, which is the peak of @profile: the first one if several
 * have it, 1 if none is known. */
__u32 profile__peak_run(const struct profile *profile);

/* Copies names from @named to frames of @profile that have none. Frames correspond if they have
 * the same offset in files of the same build id. Returns 0 or -ENOMEM. */
int profile__borrow_names(struct profile *profile, const struct profile *named);

/* Appends a copy of @run, a profile of one run. Files without build ids are the same if their
 * paths and profile_module.file are. Returns 0, -ENOMEM, or -EINVAL for a profile of several runs. */
int profile__add_run(struct profile *profile, const struct profile *run);
/* Computes meta and ledger of @profile, which must be empty, from those of its runs. @wanted runs
 * were requested, after @warmup runs that did not count. Returns 0 or -ENOMEM. */
int profile__settle_runs(struct profile *profile, __u64 wanted, __u64 warmup);
/* Makes a profile of @run alone, which the caller frees. Stacks, frames and modules keep their
 * ids. Returns 0, -ENOMEM, or -ENOENT if there is no such run. */
int profile__take_run(const struct profile *profile, __u32 run, struct profile **taken);

/* For readers of files: adds a meta or ledger entry to @run, an existing one or the next. Fails
 * with -EINVAL also for a duplicate entry. */
int profile__add_run_meta(struct profile *profile, __u32 run, const char *key, const char *value);
int profile__add_run_ledger(struct profile *profile, __u32 run, const char *name, __u64 value);

struct run_clock {
	__u64 end_ns;	/* end of the run, since its start */
	__u64 epoch_ns; /* length of the epochs of its lifetimes; 0: without --live */
};

/* Stores an array of profile__n_runs() clocks, indexed by number of the run - 1, in *@clocks,
 * which the caller frees. Returns 0, -ENOMEM, or -EINVAL for a damaged file, with @error set. */
int run_clocks__read(const struct profile *profile, struct run_clock **clocks, struct error *error);
/* Return the start of an epoch, at most the end of the run, and its last nanosecond. */
__u64 run_clock__epoch_start(const struct run_clock *clock, __u64 epoch);
__u64 run_clock__epoch_last(const struct run_clock *clock, __u64 epoch);

#endif
