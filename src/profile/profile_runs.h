/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several runs of one command in one profile. They share modules, frames and stacks; processes, and so
 * threads, counts, blocks and lifetimes, are one run's each, as are moments. Each run's clock begins at
 * 0. What meta and ledger said of a run is kept beside those of them all.
 */
#ifndef ALLOCPROF_PROFILE_RUNS_H
#define ALLOCPROF_PROFILE_RUNS_H

#include "profile.h"

/* As many as `record -r` makes. */
#define PROFILE_MAX_RUNS 10000

/* At least 1. */
__u32 profile__n_runs(const struct profile *profile);
/* The run of @count, from 1 to profile__n_runs(). */
__u32 profile__count_run(const struct profile *profile, const struct profile_count *count);
/* As profile__meta() and profile__ledger() of @run alone. */
const char *profile__run_meta(const struct profile *profile, __u32 run, const char *key);
__u64 profile__run_ledger(const struct profile *profile, __u32 run, const char *name);

/*
 * The run of @profile that its sum of all peaks is that of: the one with the highest. The first of
 * several; 1 where no peak is known.
 */
__u32 profile__peak_run(const struct profile *profile);

/* Gives frames of @profile without names those that they have in @named: only the same place in a file
 * with the same build id counts. 0 or -ENOMEM. */
int profile__borrow_names(struct profile *profile, const struct profile *named);

/* Adds a copy of @run, a profile of one run, as the next run of @profile. Files without build ids are the
 * same where their paths and profile_module.file are. 0, -ENOMEM, or -EINVAL for a profile of several. */
int profile__add_run(struct profile *profile, const struct profile *run);
/* Makes meta and ledger, which @profile must not have yet, of its runs': of @wanted, and after @warmup
 * that did not count. 0 or -ENOMEM. */
int profile__settle_runs(struct profile *profile, __u64 wanted, __u64 warmup);
/* Makes a profile, to be freed, of @run alone. Its stacks, frames and modules keep their ids. 0, -ENOMEM,
 * or -ENOENT where there is no such run. */
int profile__take_run(const struct profile *profile, __u32 run, struct profile **taken);

/* For a reader of files: adds what meta or ledger said of @run, which may be one that is there or the
 * next. -EINVAL also for an entry that is there. */
int profile__add_run_meta(struct profile *profile, __u32 run, const char *key, const char *value);
int profile__add_run_ledger(struct profile *profile, __u32 run, const char *name, __u64 value);

#endif
