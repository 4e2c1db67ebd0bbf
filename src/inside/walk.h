/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinds a thread's stack, and compares it with the last one. The steps are those of walk_rules_abi.h, by the
 * same tables; tests/unit/test_unwind.c holds both to the same expectations.
 */
#ifndef ALLOCPROF_INSIDE_WALK_H
#define ALLOCPROF_INSIDE_WALK_H

#include "abi.h"
#include "code.h"
#include "stack.h"
#include "unwind_abi.h"

/* No instruction begins there. */
#define NO_ADDRESS (~0ULL)

/* What is known of the code at an address. */
struct known_code {
	__u64 address; /* of the call: the return address minus 1, but for interrupted frames */
	__u64 offset;  /* of a frame with this return address */
	__u32 module;
	__u8 state;   /* enum unwind_table_state */
	__u8 made_up; /* 1: a return address here is that of the outermost function */
	__u8 simple;  /* 1: CFA from sp or fp, the return address below it, fp there or unchanged */
	__u8 within;  /* AP_FRAME_WITHIN: in a function of --within; else 0 */
	struct unwind_rule rule; /* UNWIND_CFA_NONE: no call frame information */
};

#define NO_CODES 16

/* Where a thread has found that there is no code; of length 0 are free entries. */
struct no_code {
	struct {
		__u64 start, end;
	} list[NO_CODES];
	__u32 next;  /* to be replaced */
	__u32 loads; /* code__loads() of these */
};

/* One step of a walk. */
struct step {
	__u64 pc, sp, fp;      /* state before the step */
	__u64 ra_slot;	       /* address of the return address */
	__u64 fp_slot;	       /* address of the saved fp; 0: fp is unchanged */
	__u64 hash;	       /* over this frame and all outer ones */
	struct ap_frame frame; /* STEP_ in its flags */
};

/* The step read more than the two words, and is not used again. */
#define STEP_ONCE 0x100
/* The step's rule reads fp. */
#define STEP_USES_FP 0x200
/* The fp before the step decides about this step or one further out. */
#define STEP_FP_MATTERS 0x400
/* The step, or one further out, is in a function of --within. */
#define STEP_WITHIN 0x800
#define STEP_FLAGS  0xffffff00U

/* A word of the stack that a step reads, and what it has to be for the next step to be the same again. */
struct word {
	__u64 address, value;
};

#define KNOWN_CODES 512

struct walker {
	__u32 max_depth;
	__u32 generation; /* code__generation() of what is remembered */
	/* The last stack: steps[0] is the outermost frame, steps[n - 1] the innermost. */
	__u32 n;
	__u32 end;	/* enum ap_stack_end */
	__u32 end_once; /* 1: the end depends on more than the last frame's rule */
	__u32 lookups;	/* of code that was not known */
	__u32 stacks;	/* stack__generation() of @range and @own */
	__u32 walks;	/* since what was found of code made at run time was forgotten */
	struct stack_range range, own; /* @own: the thread's own stack, once it was there */
	struct no_code no_code;
	__u64 left_sp, goroutine_sp;
	__u32 own_module; /* whose frames walker__frames() leaves out; 0: none */
	__u32 pad;
	struct known_code known[KNOWN_CODES];
	/* So many of the outermost steps repeat if what they read does: the first n_words[i] of @words for step i and those further
	 * out. All are in the thread's own stack, so that they can be read whatever it holds. */
	__u32 n_plain;
	__u16 n_words[AP_MAX_DEPTH];
	struct word words[2 * AP_MAX_DEPTH];
	struct step steps[AP_MAX_DEPTH];
	struct step fresh[AP_MAX_DEPTH]; /* the current walk, innermost first */
	struct stack_copy copy;		 /* of the current walk; seldom used, so it is last */
};

/* Forgets the last stack, and all that is known of code. */
void walker__forget(struct walker *walker);

/* The walker is another thread's from now on. */
void walker__leave_stack(struct walker *walker);

/* Walks from a function's entry: the caller's return address, and sp and fp as the caller has them when the
 * function has returned. Returns the stack's hash, as bpf/stack.bpf.h does. */
__u64 walker__walk(struct walker *walker, __u64 pc, __u64 sp, __u64 fp);

/* Whether the last stack has a frame in a function of --within. */
static inline bool walker__is_within(const struct walker *walker)
{
	return walker->n && walker->steps[walker->n - 1].frame.flags & STEP_WITHIN;
}

/* Copies the last stack's frames, innermost first; returns how many. */
__u32 walker__frames(const struct walker *walker, struct ap_frame *out);

#endif
