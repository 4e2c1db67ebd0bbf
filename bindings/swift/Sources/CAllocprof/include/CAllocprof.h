/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Marks of regions whose names are known at run time alone, since Swift has no macros of C. They have no note, so that only
 * the engine preload sees them. No frame ends these regions. */
#ifndef CALLOCPROF_H
#define CALLOCPROF_H

#include <allocprof.h>

void allocprof_swift_begin(const char *name);
void allocprof_swift_end(const char *name);

/* Asynchronous work in the region @name. */
struct allocprof_swift_work {
	struct allocprof_task task;
	const char *name;
};

/* This thread begins a part of it. */
void allocprof_swift_enter(struct allocprof_swift_work *work);
/* Does nothing where the thread is in no part of it. */
void allocprof_swift_leave(struct allocprof_swift_work *work);
/* Leaves what this thread is in, and returns it; NULL: it is in none. */
struct allocprof_swift_work *allocprof_swift_pause(void);

#endif
