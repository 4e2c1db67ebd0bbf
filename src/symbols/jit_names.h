/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names for JIT-compiled code, from the perf maps that processes write. */
#ifndef ALLOCPROF_JIT_NAMES_H
#define ALLOCPROF_JIT_NAMES_H

#include <linux/types.h>

struct jit_names;
struct profile;

/* Returns NULL if there is no memory. */
struct jit_names *jit_names__new(void);
void jit_names__free(struct jit_names *names);

/*
 * Notes that @frame, which has no module, was seen in process @pid with program @program. To be
 * called whenever such a frame is seen. Opens the process's map while it lives; the map is read at
 * the end, since programs keep appending to it. Returns 0 or -ENOMEM.
 */
int jit_names__add(struct jit_names *names, __u32 program, __u32 pid, __u32 frame);

/* Names all frames without lines from the maps. Returns 0 or -ENOMEM. */
int jit_names__apply(struct jit_names *names, struct profile *profile);

#endif
