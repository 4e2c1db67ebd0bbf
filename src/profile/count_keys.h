/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Keys by which counts, threads and processes are found again in another copy of the same recording,
 * each of which numbers them anew.
 */
#ifndef ALLOCPROF_COUNT_KEYS_H
#define ALLOCPROF_COUNT_KEYS_H

#include <linux/types.h>

struct profile;
struct profile_process;

/* Return the key of a program that a process runs, and of a thread by its id. Keys of one @seed can be
 * compared. */
__u64 process_key__of(const struct profile_process *process, __u64 seed);
__u64 thread_key__of(const struct profile *profile, __u32 thread, __u64 seed);

/* Returns the keys of all counts, by count's id - 1, which the caller frees; NULL: there is no memory. */
__u64 *count_keys__make(const struct profile *profile, __u64 seed);

#endif
