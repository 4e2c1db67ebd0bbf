/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which functions ended by a tail call between two frames, by the machine code of the files: in a worker. */
#ifndef ALLOCPROF_TAIL_CALL_SEARCH_H
#define ALLOCPROF_TAIL_CALL_SEARCH_H

#include "tail_call_pairs.h"

struct elf_file;

struct tail_call_files {
	/* Opens the file of @module, an id of the profile. -ENOMEM, or another negative errno if it is not there. */
	int (*open)(void *context, __u32 module, struct elf_file **out);
	void *context;
};

/* Adds each pair of adjacent frames of @profile's stacks to @pairs, with the tail calls that are certain between them; most
 * have none. 0 or -ENOMEM. */
int tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
		       struct tail_call_pairs *pairs);

#endif
