/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts maps into the programs' maps of maps. */
#ifndef ALLOCPROF_SLOTS_H
#define ALLOCPROF_SLOTS_H

#include <linux/types.h>

/* Each update of a map of maps waits for an RCU grace period. Until slots__wait() updates wait at the
 * same time, while this thread goes on. */
struct slots;

/* NULL: no memory. */
struct slots *slots__new(void);
void slots__free(struct slots *slots);

/* Puts the maps @fds, which stay open, into the slots from @first of the map @map_fd: before slots__wait()
 * soon, after it, and where @slots is NULL, at once. -ENOMEM, or an errno of bpf(2). */
int slots__set(struct slots *slots, int map_fd, __u32 first, const int *fds, __u32 n);

/* Waits until all maps are in their slots, as they have to be before programs look for them. The
 * first error of an update. */
int slots__wait(struct slots *slots);

#endif
