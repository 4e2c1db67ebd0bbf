/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinds a thread's stack, and reuses the steps of the last walk that have not changed. The steps
 * follow walk_rules_abi.h and the tables that bpf/ uses, too; tests/unit/test_unwind.c holds both
 * to the same expectations.
 */
#ifndef ALLOCPROF_INSIDE_WALK_H
#define ALLOCPROF_INSIDE_WALK_H

#include "abi.h"
#include "code.h"
#include "frame_rules.h"
#include "stack.h"
#include "unwind_abi.h"

/* No instruction has this address. */
#define NO_ADDRESS (~0ULL)

/* Facts about the code at an address that the walker keeps. */
struct known_code {
	/* Address of the call: the return address minus 1, except for interrupted frames. */
	__u64 address;
	__u64 offset; /* file offset for a frame with this return address */
	__u32 module;
	__u8 state;   /* enum unwind_table_state */
	__u8 made_up; /* 1: a return address here is that of the outermost function */
	__u8 simple;  /* 1: CFA from sp or fp, the return address below it, fp there or unchanged */
	__u8 within;  /* AP_FRAME_WITHIN if it is in a function of --within, and CODE_ASYNC */
	struct unwind_rule rule; /* UNWIND_CFA_NONE: there is no call frame information */
};

/* The code is in an async function of Swift, whose frame has its context. */
#define CODE_ASYNC 0x80

#define NO_CODES 16

/* Address ranges in which a thread has found no code; entries of length 0 are free. */
struct no_code {
	struct {
		__u64 start, end;
	} list[NO_CODES];
	__u32 next;  /* index of the entry that is replaced next */
	__u32 loads; /* code__loads() when these were found */
};

/* One step of a walk. */
struct step {
	__u64 pc, sp, fp;      /* state before the step */
	__u64 ra_slot;	       /* address of the word with the return address */
	__u64 fp_slot;	       /* address of the saved fp; 0: fp is unchanged */
	__u64 hash;	       /* over this frame and all outer ones */
	struct ap_frame frame; /* its flags also have STEP_ bits */
};

/* The step has read more than the two words, so it is not reused. */
#define STEP_ONCE 0x100
/* The step's rule reads fp. */
#define STEP_USES_FP 0x200
/* The fp before the step decides about this step or one further out. */
#define STEP_FP_MATTERS 0x400
/* The step, or one further out, is in a function of --within. */
#define STEP_WITHIN 0x800
/* The step is in an async function of Swift, which has saved its context. */
#define STEP_ASYNC 0x1000
/* The step, or one further out, is in such a function. */
#define STEP_HAS_ASYNC 0x2000
#define STEP_FLAGS     0xffffff00U

/* A word of the stack that a step reads, and the value with which the next step is the same again. */
struct word {
	__u64 address, value;
};

#define KNOWN_CODES 512

struct walker {
	__u32 max_depth;
	__u32 generation; /* code__generation() of the remembered steps */
	/* The last stack: steps[0] is the outermost frame, steps[n - 1] the innermost. */
	__u32 n;
	__u32 end;	/* enum ap_stack_end */
	__u32 end_once; /* 1: the end depends on more than the last frame's rule */
	__u32 lookups;	/* how many times this walk has looked up code that was not known */
	__u32 stacks;	/* stack__generation() of @range and @own */
	__u32 walks;	/* number of walks since facts about code made at run time were dropped */
	/* @own: the thread's own stack, once the thread was seen on it */
	struct stack_range range, own;
	struct no_code no_code;
	__u64 left_sp, goroutine_sp;
	struct python_stack *python; /* NULL: there has been no frame of Python */
	struct async_stack *async;   /* NULL: there has been no async function of Swift */
	__u32 own_module;	     /* module whose frames walker__frames() leaves out; 0: none */
	__u32 pad;
	struct known_code known[KNOWN_CODES];
	/* How many of the outermost steps repeat if the words that they read are unchanged: step i
	 * and those further out have read the first n_words[i] of @words. All of them are in the
	 * thread's own stack, so that they can always be read. */
	__u32 n_plain;
	__u16 n_words[AP_MAX_DEPTH];
	struct word words[2 * AP_MAX_DEPTH];
	struct step steps[AP_MAX_DEPTH];
	struct step fresh[AP_MAX_DEPTH]; /* the current walk, innermost first */
	/* Used by the current walk; seldom, so they are last. */
	struct stack_copy copy;
	struct frame_work work;
};

/* Forgets the last stack, and all that is known about code. */
void walker__forget(struct walker *walker);

/* To be called when the walker is given to another thread. */
void walker__leave_stack(struct walker *walker);

/* Walks the stack from a function's entry. @pc is the return address; @sp and @fp are the caller's
 * when the function has returned. Returns the stack's hash, computed as bpf/stack.bpf.h does. */
__u64 walker__walk(struct walker *walker, __u64 pc, __u64 sp, __u64 fp);

/* Returns whether the last stack has a frame in a function of --within. */
static inline bool walker__is_within(const struct walker *walker)
{
	return walker->n && walker->steps[walker->n - 1].frame.flags & STEP_WITHIN;
}

/* Returns whether the last stack has an async function of Swift. */
static inline bool walker__is_async(const struct walker *walker)
{
	return walker->n && walker->steps[walker->n - 1].frame.flags & STEP_HAS_ASYNC;
}

/* Copies the last stack's frames to @out, innermost first. Returns how many there are. */
__u32 walker__frames(const struct walker *walker, struct ap_frame *out);

#endif
