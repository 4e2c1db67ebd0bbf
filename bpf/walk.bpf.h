/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a walk up the stack, and its look-ups. */
#ifndef ALLOCPROF_WALK_BPF_H
#define ALLOCPROF_WALK_BPF_H

#include "arch.bpf.h"
#include "scratch.bpf.h"
#include "window.bpf.h"

enum vma_result {
	VMA_FOUND,
	VMA_NONE, /* no executable mapping */
	VMA_BUSY, /* bpf_find_vma() or the ring buffer failed: retry at the next hit */
};

/* Loads the code range around @address into the scratch; returns its index, or minus enum
 * vma_result. */
int range__load(struct scratch *scratch, __u64 address, __u32 pid);

/* Waits while bpf_find_vma() fails since another thread of the process maps memory. 1 if
 * range__load() will succeed now. */
int vma__await(__u64 address, __u32 process, __u32 pid, __u32 generation, __u32 seq);

/* Waits for a limited time until @module's table is compiled; 1 if it is. */
int table__await(__u32 module);

/* Unwinds frames from the state in @scratch->walk until it ends. Global, like what it calls, so that the verifier
 * checks it once, and not for all states in which the programs call it. */
int walk__frames(struct scratch *scratch);

/* Unwinds one frame by look-ups; 1 if the walk ends. */
int walk__step(struct scratch *scratch, struct walk *walk, __u32 index);

#endif
