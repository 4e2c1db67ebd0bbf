/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names for frames in code without a file, from the maps that their processes write. */
#ifndef ALLOCPROF_JIT_NAMES_H
#define ALLOCPROF_JIT_NAMES_H

#include <linux/types.h>

struct jit_names;
struct profile;

/* NULL without memory. */
struct jit_names *jit_names__new(void);
void jit_names__free(struct jit_names *names);

/*
 * Notes that @frame of the profile, which is in no module, was first seen in process @pid, the image
 * that @image stands for. While the process lives its map is opened; it is read at the end, as
 * programs go on writing it. To be called for each sight of such a frame. 0 or -ENOMEM.
 */
int jit_names__add(struct jit_names *names, __u32 image, __u32 pid, __u32 frame);

/* Gives the frames that have no lines yet the names that the maps have by now. 0 or -ENOMEM. */
int jit_names__apply(struct jit_names *names, struct profile *profile);

#endif
