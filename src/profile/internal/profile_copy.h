/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A run out of one profile and into another; for profile_runs.h only. */
#ifndef ALLOCPROF_PROFILE_COPY_H
#define ALLOCPROF_PROFILE_COPY_H

#include "profile.h"

struct profile_copy {
	const struct profile *from;
	struct profile *to;
	__u32 from_run, to_run;
	bool keeps_ids; /* of places and stacks: @to is empty and gets those of all runs */
	/* Filled here: ids in @to by id - 1 in @from, 0 where it is not copied; owned. */
	__u32 *modules, *functions, *files, *frames, *stacks, *processes, *threads, *counts;
};

/* Copies places, stacks and all that is of the run, but for meta and ledger. 0 or -ENOMEM. To be released
 * either way. */
int profile_copy__run(struct profile_copy *copy);
void profile_copy__release(struct profile_copy *copy);

/* The module of @to that is the same file as @module of another profile, or 0. */
__u32 profile_copy__find_module(const struct profile *to, const struct profile_module *module);

/* Gives @frame of @to the lines of @from's, whose functions and files are added. 0 or -ENOMEM. */
int profile_copy__lines(struct profile *to, __u32 frame, const struct profile *from,
			const struct profile_frame *of);

#endif
