/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Working memory of a walk, claimed by a hit; it also caches the thread's last walk. */
#ifndef ALLOCPROF_SCRATCH_BPF_H
#define ALLOCPROF_SCRATCH_BPF_H

#include "arch.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "python_abi.h"
#include "trampoline.bpf.h"
#include "unwind_abi.h"

#define WINDOW_WORDS 1024

/* How many bytes of stack the first walk of a thread copies. */
#define FIRST_WINDOW_BYTES 1024

/* Number of mappings that a scratch caches. Most stacks use few. */
#define SCRATCH_MAPPINGS 4

/* A range of code with one slice of an unwind table: a mapping, or the part of it that the slice
 * covers. */
struct code_range {
	__u64 start, end;
	__u64 bias; /* file offset minus address */
	__u32 module;
	__u32 state;  /* enum unwind_table_state */
	__u32 within; /* 1: the module has code of a function of --within */
	__u32 pad;
	struct unwind_slice slice;
};

/* One step of a walk. */
struct step {
	__u64 pc, sp, fp; /* state before the step */
	__u64 ra_slot;	  /* address of the return address */
	__u64 fp_slot;	  /* address of the saved fp; 0: fp is unchanged */
	__u64 hash;	  /* over this frame and all outer ones */
	struct ap_frame frame;
};

/* Value of fp_slot: the step has read more than those two words and is never reused. */
#define STEP_ONCE 1

/* Number of records that a scratch caches, with live, by key. A key's record never changes. */
#define SCRATCH_RECORDS 64

struct cached_record {
	struct ap_count_key key; /* process is 0 if the slot is empty */
	__u32 index;
	__u32 pad;
};

/* Working memory of a walk, and cache of the thread's last one. */
/* The state of a walk. It has no pointers, so that the verifier can check walk__step() by itself,
 * and is not on the stack, since Linux 6.1 allows 512 bytes for all frames together. */
struct walk {
	__u64 pc, sp, fp;
	__u64 link;    /* return address of a frame that has not saved it; 0: not known, or none */
	__u32 pid;     /* in allocprof's PID namespace */
	__u32 call;    /* 1: pc is a return address, 0: the thread was interrupted there */
	__u32 cursor;  /* index in scratch->steps of the next cached step */
	__u32 matched; /* first step of the walk from which on all are cached; ~0: none */
	__u32 matched_cursor;
	__u32 n_frames;
	__u32 end;
	__u32 end_once;
	/* 1: all steps so far were cached and are not copied, since most likely the others are
	 * cached, too. If they are not, the walk is repeated (@again) with copies. */
	__u32 sparing, again;
	__u32 over_fp; /* 1: a step used the frame pointer for want of a rule */
	__u32 range;   /* index in scratch->ranges of the last one used */
	__u32 locked;  /* 1: the program must not wait, as in struct hit */
	__u32 within;  /* AP_FRAME_WITHIN: a frame so far is in a function of --within */
};

/* A frame of Python. */
struct python_entry {
	__u64 key; /* as in struct ap_code_record; 0: here ends a call of the loop, whose frame is that of @step */
	__u64 code;
	__u32 position; /* 1 if key is 0: outer frames were left out for want of room */
	__u32 step;
};

/* Words, powers of two, of which AP_PYTHON_FRAME_BYTES and AP_PYTHON_CODE_BYTES are used. */
#define PYTHON_FRAME_WORDS 16
#define PYTHON_CODE_WORDS  32
#define PYTHON_TEXT_WORDS  128

/* The walk through the frames of an interpreter: python.bpf.c. */
struct scratch_python {
	__u32 module; /* of an interpreter that the thread has code of in its stacks; 0: none that is known */
	__u32 n; /* in entries, innermost first */
	__u32 n_placed, room, step, is_cut;
	__u64 loop;   /* address of _PyEval_EvalFrameDefault */
	__u64 thread; /* the last state of the thread; 0: none */
	__u64 interpreter;
	__u64 file, file_hash; /* a string with the path of a file, and its hash; 0: none */
	__u64 frame, holder;
	__u64 pending; /* address of which it is looked for the step in whose frame it is; 0: none */
	__u64 hash, placed_hash;
	struct ap_python of;
	__u64 frame_words[PYTHON_FRAME_WORDS], code_words[PYTHON_CODE_WORDS];
	__u64 text[PYTHON_TEXT_WORDS];
	struct python_entry entries[AP_MAX_DEPTH];
};

struct scratch {
	__u32 taken;
	/* The last walk: steps[first] is the innermost frame, steps[AP_MAX_DEPTH - 1] the
	 * outermost. */
	__u32 first;
	__u64 thread;
	__u64 trampoline; /* address of the trampoline of return probes in this process */
	__u64 code_mask;  /* of arch__code_mask() */
	__u64 code;	  /* code bytes at a pc without a table */
	__u32 process, generation;
	__u32 end;	  /* enum ap_stack_end */
	__u32 end_once;	  /* 1: the end depends on more than the last frame's rule */
	__u32 span_bytes; /* bytes of stack that the walk read */
	__u32 next_range;
	__u64 unreadable;  /* first page above the stack that could not be read; 0: not known */
	__u64 absent;	   /* address on a page that the last failed read needed; 0: not known */
	__u64 absent_word; /* word that was read from there to have the page read in */
	__u64 left_sp; /* sp of the C stack that the walk left last for a goroutine's; 0: none */
	__u64 goroutine_sp;
	__u32 within; /* 1: a frame of the last walk is in a function of --within */
	__u32 seq;    /* mappings__seq() */
	struct walk walk;
	struct code_range ranges[SCRATCH_MAPPINGS];
	struct cached_record records[SCRATCH_RECORDS];
	struct scratch_python python;
	struct step steps[AP_MAX_DEPTH];
	struct step fresh[AP_MAX_DEPTH]; /* the current walk, innermost first */
	/* A copy of the stack; after the walk, the frames of the record to user space. */
	__u64 window_start, window_bytes;
	/* A multiple of 8 bytes: the frames follow it without padding. */
	struct ap_stack_record record;
	union {
		__u64 window[WINDOW_WORDS];
		struct ap_frame frames[AP_MAX_DEPTH];
		struct {
			struct ap_code_record record;
			char lines[AP_CODE_LINES_BYTES];
		} code_record;
	};
};

/* User space sets the number of slots, a power of two, before load. */
DECLARE_MAP(scratches, ARRAY, 64, 0, __u32, struct scratch);

/* Returns @index with a bound that the verifier sees: without the barrier clang drops a mask that
 * it can prove redundant by comparisons that the verifier does not track. */
static __always_inline __u32 depth_index(__u32 index)
{
	barrier_var(index);
	return index & (AP_MAX_DEPTH - 1);
}

/*
 * Claims the slot that the thread had last time, or one of the next ones if another program holds
 * it: programs are preemptible. Returns NULL if all slots that are tried are held.
 */
static __always_inline struct scratch *scratch__claim(__u64 thread)
{
	__u32 home = ap_stack__mix(thread);

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

/* Drops the cached walk and mappings if they belong to another thread or to another state of its
 * code. */
static __always_inline void scratch__enter(struct scratch *scratch, __u64 thread,
					   struct process *process)
{
	__u32 seq = mappings__seq();

	scratch->trampoline = trampoline__address();
	scratch->code_mask = arch__code_mask();
	if (scratch->thread == thread && scratch->process == process->id &&
	    scratch->generation == process->generation && scratch->seq == seq)
		return;
	/* Its state in the interpreter stays. */
	if (scratch->thread != thread || scratch->process != process->id)
		scratch->python.thread = 0;
	scratch->python.module = scratch->python.n = 0;
	scratch->thread = thread;
	scratch->process = process->id;
	scratch->generation = process->generation;
	scratch->seq = seq;
	scratch->first = AP_MAX_DEPTH;
	scratch->span_bytes = 0;
	scratch->unreadable = 0;
	for (int i = 0; i < SCRATCH_MAPPINGS; i++)
		scratch->ranges[i].end = 0;
}

#endif
