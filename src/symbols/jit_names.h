/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names and lines for JIT-compiled code, from the perf maps and jitdumps that processes write. */
#ifndef ALLOCPROF_JIT_NAMES_H
#define ALLOCPROF_JIT_NAMES_H

#include <linux/types.h>

struct jit_names;
struct mapped_file;
struct profile;

/* A frame without a module, and the process and time in which it was seen. */
struct jit_place {
	__u32 program, pid;
	__u32 frame;   /* id */
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

struct jit_names_options {
	/* Calls @visit with each file that the process @pid has mapped as code, or had when it ended. NULL: these are not known. */
	void (*each_mapped)(void *context, __u32 pid,
			    void (*visit)(void *to, const struct mapped_file *file), void *to);
	void *context;
};

/* Returns NULL if there is no memory. @options is copied. */
struct jit_names *jit_names__new(const struct jit_names_options *options);
void jit_names__free(struct jit_names *names);

/*
 * Notes that a frame was seen. To be called whenever such a frame is seen. Opens what the process says of its code while it
 * lives; that is read at the end, since programs keep appending to it. An address that has several pieces of code one
 * after the other is one frame, named by what was there at the first of these calls. Returns 0 or -ENOMEM.
 */
int jit_names__add(struct jit_names *names, const struct jit_place *place);

/* Names all frames without lines. Returns 0 or -ENOMEM. */
int jit_names__apply(struct jit_names *names, struct profile *profile);

#endif
