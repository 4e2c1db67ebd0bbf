/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a program frees because it ends. */
#ifndef ALLOCPROF_EXIT_FREES_H
#define ALLOCPROF_EXIT_FREES_H

#include <linux/types.h>

struct error;
struct profile;

/* What was live before that began, and after it, and how long it took. */
struct exit_frees {
	__u64 epoch; /* the first of the end; 0: not much was freed then */
	__u64 took_ns;
	__u64 freed_bytes;
};

/*
 * Finds the last moments of a recording whose processes have all ended, if they freed a fourth and 1 MiB or more of
 * what was live: exit handlers, an interpreter that takes itself apart, or a program that is tidy. They are the epochs at the end
 * in which little was allocated beside what was freed. *@out is zero for several runs, and if there are none such. 0, -ENOMEM,
 * or -EINVAL for a damaged file, with @error set.
 */
int exit_frees__find(const struct profile *profile, struct exit_frees *out, struct error *error);

#endif
