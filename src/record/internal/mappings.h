/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of anonymous mappings as a source of memory (docs/mappings.md): the programs at the system
 * calls, and what stands for an allocator of theirs. */
#ifndef ALLOCPROF_MAPPINGS_H
#define ALLOCPROF_MAPPINGS_H

#include <linux/types.h>
#include <stdbool.h>

/* What it is called among allocators, which are files. */
#define MAPPINGS_PATH "[kernel]"

struct allocator;
struct allocprof_bpf;
struct error;

/* Before the programs are loaded: whether those of mappings are, and those that count by stack. */
void mappings__choose(struct allocprof_bpf *skeleton, bool wanted, bool stacks);

/* Attaches them when they are loaded, and takes them off again. */
int mappings__attach(struct allocprof_bpf *skeleton, struct error *error);
void mappings__detach(struct allocprof_bpf *skeleton);

/* Sites for the system calls, in the order of enum ap_function. NULL: no memory. */
struct allocator *mappings__allocator(void);

/* Runs of the programs that the kernel left out. */
struct counters;
__u64 mappings__recursion_misses(const struct allocprof_bpf *skeleton, struct counters *counters);

#endif
