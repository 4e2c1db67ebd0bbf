/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what programs freed because they ended. */
#ifndef ALLOCPROF_EXIT_FREES_H
#define ALLOCPROF_EXIT_FREES_H

#include <linux/types.h>
#include <stdbool.h>

struct error;
struct profile;
struct profile_lifetime;

/* The frees at a program's end: when they began, how long they took, and how much they freed. */
struct exit_frees {
	__u64 epoch; /* first epoch of the end; 0: little was freed then */
	__u64 took_ns;
	__u64 freed_bytes;
};

/*
 * Finds the last moments of a recording whose processes have all ended, if a fourth and at least 1
 * MiB of what was live was freed in them: by exit handlers, an interpreter that takes itself
 * apart, or a program that cleans up. They are the epochs at the end in which little was allocated
 * compared with what was freed. *@out is zero for several runs, and if there are no such epochs.
 * Returns 0, -ENOMEM, or -EINVAL for a damaged file, with @error set.
 */
int exit_frees__find(const struct profile *profile, struct exit_frees *out, struct error *error);
/* Returns whether the blocks of @cell are live before the frees or, if @frees is zero, at the end. */
bool exit_frees__leaves(const struct exit_frees *frees, const struct profile_lifetime *cell);

#endif
