/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a walk up the stack, and its look-ups. */
#ifndef ALLOCPROF_WALK_BPF_H
#define ALLOCPROF_WALK_BPF_H

#include "arch.bpf.h"
#include "scratch.bpf.h"
#include "window.bpf.h"

/* State of a walk. Without pointers, so that the verifier can check walk__step() by itself. */
struct walk {
	__u64 pc, sp, fp;
	__u32 pid;     /* in allocprof's PID namespace */
	__u32 call;    /* 1: pc is a return address, 0: the thread was interrupted there */
	__u32 cursor;  /* index in scratch->steps of the next cached step */
	__u32 matched; /* step of the walk from which on all are cached; ~0: none */
	__u32 matched_cursor;
	__u32 n_frames;
	__u32 end;
	__u32 end_once;
	/* 1: all steps so far were cached, and are not copied, since the others most likely are,
	 * too; if not, the walk is repeated (@again) with copies. */
	__u32 sparing, again;
	__u32 over_fp; /* 1: a step used the frame pointer for want of a rule */
	__u32 range;   /* index in scratch->ranges of the last one used */
	__u32 within;  /* AP_FRAME_WITHIN: a frame so far is in a function of --within */
};

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

/* Unwinds one frame by look-ups; 1 if the walk ends. */
int walk__step(struct scratch *scratch, struct walk *walk, __u32 index);

static __always_inline long walk__stop(struct walk *walk, __u32 end, bool once)
{
	walk->end = end;
	walk->end_once = once;
	return 1;
}

#endif
