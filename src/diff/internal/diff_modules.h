/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which files of two profiles are the same one, though it may have another version or name. */
#ifndef ALLOCPROF_DIFF_MODULES_H
#define ALLOCPROF_DIFF_MODULES_H

#include "diff.h"

/* A file's base name on one side. */
struct diff_module {
	const char *base; /* the profile's */
	char *name;	  /* for both sides: the base name, or two where they differ; owned */
	bool is_matched;
};

struct diff_modules {
	struct diff_module *modules[DIFF_SIDES]; /* no two of a side have one name */
	size_t n[DIFF_SIDES];
	__u32 *by_id[DIFF_SIDES]; /* index of a profile's module, by its id - 1 */
};

/*
 * Files of one base name are the same. Of the rest the programs that the two commands ran are, and then
 * those whose names are at least half alike, the most alike first. 0 or -ENOMEM; release in either case.
 */
int diff_modules__match(struct diff_modules *modules, const struct diff_input inputs[DIFF_SIDES]);
void diff_modules__release(struct diff_modules *modules);

#endif
