/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Duration and epoch length of each run of a profile. */
#ifndef ALLOCPROF_RUN_CLOCKS_H
#define ALLOCPROF_RUN_CLOCKS_H

#include <linux/types.h>

struct error;
struct profile;

struct run_clock {
	__u64 end_ns;	/* since its start */
	__u64 epoch_ns; /* of its lifetimes; 0: without --live */
};

/* *@clocks, to be freed, has profile__n_runs() elements, by number of the run - 1. 0, -ENOMEM, or
 * -EINVAL for a damaged file, with @error set. */
int run_clocks__read(const struct profile *profile, struct run_clock **clocks, struct error *error);

#endif
