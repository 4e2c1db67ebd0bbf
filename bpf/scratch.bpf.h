/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a walk needs room for, claimed by a hit, and what it remembers of the thread's last stack. */
#ifndef ALLOCPROF_SCRATCH_BPF_H
#define ALLOCPROF_SCRATCH_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"
#include "module.bpf.h"
#include "tables.bpf.h"
#include "trampoline.bpf.h"

#define WINDOW_WORDS 1024

/* Bytes of stack that are read at first, when nothing is known of the thread. */
#define FIRST_WINDOW_BYTES 1024

/* Mappings that a scratch remembers. A stack changes between few of them. */
#define SCRATCH_MAPPINGS 4

/* A code range with one set of rules: a mapping, cut to what one slice of its table covers. */
struct code_range {
	__u64 start, end;
	__u64 bias; /* file offset minus address */
	__u32 module;
	__u32 state;  /* enum unwind_table_state */
	__u32 within; /* 1: code of the module is such that calls may be within */
	__u32 pad;
	struct unwind_slice slice;
};

/* One step of a walk. */
struct step {
	__u64 pc, sp, fp; /* what it started from */
	__u64 ra_slot;	  /* address that it read the next pc from */
	__u64 fp_slot;	  /* address that it read the next fp from; 0: fp stayed as it was */
	__u64 hash;	  /* over this frame and all further out */
	struct ap_frame frame;
};

/* Marks a step that read more than those two words: it is never repeated from memory. */
#define STEP_ONCE 1

/* Records that a scratch remembers, with live, by their keys. They never change. */
#define SCRATCH_MEMOS 64

struct record_memo {
	struct ap_count_key key; /* its process is 0 where nothing is remembered */
	__u32 index;
	__u32 pad;
};

/* What a walk needs room for, and what is left of the thread's last one. */
struct scratch {
	__u32 taken;
	/* The last walk: steps[first] is the innermost frame, steps[AP_MAX_DEPTH - 1] the outermost. */
	__u32 first;
	__u64 thread;
	__u64 trampoline; /* of this process's return probes, whoever set them */
	__u64 code;	  /* at a pc that has no table */
	__u32 process, generation;
	__u32 end;	  /* enum ap_stack_end */
	__u32 end_once;	  /* 1: the end was not decided by the last frame's rule alone */
	__u32 span_bytes; /* of stack that the walk read */
	__u32 next_range;
	__u64 left_sp; /* of the stack that this walk left last for a goroutine's; 0: it left none */
	__u64 goroutine_sp;
	__u32 within; /* 1: a frame of the last walk is in code that calls are to be within */
	__u32 seq;    /* mappings__seq() */
	struct code_range ranges[SCRATCH_MAPPINGS];
	struct record_memo memos[SCRATCH_MEMOS];
	struct step steps[AP_MAX_DEPTH];
	struct step fresh[AP_MAX_DEPTH]; /* the walk under way, innermost first */
	/* A copy of the stack; when the walk is done, the frames of the record to user space. */
	__u64 window_start, window_bytes;
	struct ap_stack_record record; /* a multiple of 8 bytes: the frames follow it closely */
	union {
		__u64 window[WINDOW_WORDS];
		struct ap_frame frames[AP_MAX_DEPTH];
	};
};

/* The number of slots, a power of two, is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* An index that the verifier can see to be one: clang would leave out a mask that it can prove to do
 * nothing, from comparisons that the verifier does not connect. */
static __always_inline __u32 depth_index(__u32 index)
{
	barrier_var(index);
	return index & (AP_MAX_DEPTH - 1);
}

/* The finalizer of MurmurHash3: every bit of the input moves every bit of the result. */
static __always_inline __u64 mix(__u64 value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	value ^= value >> 33;
	return value;
}

/*
 * The slot that the thread had last time, if nobody else took it. Programs are preemptible: a slot
 * is claimed, not assumed, and another one is taken where a preempted program holds it. NULL where
 * all that are tried are held.
 */
static __always_inline struct scratch *scratch__claim(__u64 thread)
{
	__u32 home = mix(thread);

	if (config.no_scratch)
		return NULL;
	for (__u32 i = 0; i < AP_SCRATCH_TRIES; i++) {
		__u32 slot = (home + i) & config.scratch_mask;
		struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

		if (scratch && __sync_val_compare_and_swap(&scratch->taken, 0, 1) == 0)
			return scratch;
	}
	return NULL;
}

static __always_inline void scratch__release(struct scratch *scratch)
{
	__sync_lock_test_and_set(&scratch->taken, 0);
}

/* Makes what the scratch remembers that of this thread in this state of its code. */
static __always_inline void scratch__enter(struct scratch *scratch, __u64 thread,
					   struct process *process)
{
	__u32 seq = mappings__seq();

	scratch->trampoline = trampoline__address();
	if (scratch->thread == thread && scratch->process == process->id &&
	    scratch->generation == process->generation && scratch->seq == seq)
		return;
	scratch->thread = thread;
	scratch->process = process->id;
	scratch->generation = process->generation;
	scratch->seq = seq;
	scratch->first = AP_MAX_DEPTH;
	scratch->span_bytes = 0;
	for (int i = 0; i < SCRATCH_MAPPINGS; i++)
		scratch->ranges[i].end = 0;
}

#endif
