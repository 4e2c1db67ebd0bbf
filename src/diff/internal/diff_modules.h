/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matches the files of two profiles, also across versions and names. */
#ifndef ALLOCPROF_DIFF_MODULES_H
#define ALLOCPROF_DIFF_MODULES_H

#include "diff.h"

/* A base name on one side. */
struct diff_module {
	const char *base; /* owned by the profile */
	char *name;	  /* for both sides: the base name, or both if they differ; owned */
	bool is_matched;
};

struct diff_modules {
	struct diff_module *modules[DIFF_SIDES]; /* base names are unique per side */
	size_t n[DIFF_SIDES];
	__u32 *by_id[DIFF_SIDES]; /* index of a profile's module, by its id - 1 */
};

/* Matches files by base name; then the programs of the two commands; then files whose names are at
 * least half similar, best first. 0 or -ENOMEM; release in either case. */
int diff_modules__match(struct diff_modules *modules, const struct diff_input inputs[DIFF_SIDES]);
void diff_modules__release(struct diff_modules *modules);

#endif
