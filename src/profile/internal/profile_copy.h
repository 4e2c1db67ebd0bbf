/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies a run from one profile to another; for profile_runs.h only. */
#ifndef ALLOCPROF_PROFILE_COPY_H
#define ALLOCPROF_PROFILE_COPY_H

#include "profile.h"

struct profile_copy {
	const struct profile *from;
	struct profile *to;
	__u32 from_run, to_run;
	bool keeps_ids; /* frames and stacks of all runs are copied to @to, which is empty, with
			 * their ids */
	/* Filled here: id in @to by id - 1 in @from, 0 if not copied; owned. */
	__u32 *modules, *functions, *files, *frames, *stacks, *processes, *threads, *counts;
};

/* Copies all of the run but meta and ledger. 0 or -ENOMEM. To be released either way. */
int profile_copy__run(struct profile_copy *copy);
void profile_copy__release(struct profile_copy *copy);

/* The module of @to that is the same file as another profile's @module, or 0. */
__u32 profile_copy__find_module(const struct profile *to, const struct profile_module *module);

/* Sets the lines of @frame in @to to those of @from's frame; adds their functions and files. 0 or
 * -ENOMEM. */
int profile_copy__lines(struct profile *to, __u32 frame, const struct profile *from,
			const struct profile_frame *of);

#endif
