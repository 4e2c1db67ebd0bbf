/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a walk has to know of the code that a frame is in. */
#ifndef ALLOCPROF_INSIDE_KNOWN_CODE_H
#define ALLOCPROF_INSIDE_KNOWN_CODE_H

#include "code.h"
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

void no_code__forget(struct no_code *none);

/* Looks the code up that a frame is in, @call: whose pc is a return address. False if it is in no mapping. */
bool known_code__find(struct no_code *none, __u64 pc, __u32 call, struct known_code *out);

/* What was said of the bytes at an address: what an epilogue pops, and the following. */
#define SAYS_POPPED   0xff
#define SAYS_FP	      0x100
#define SAYS_EPILOGUE 0x200
#define SAYS_END      0x400

/* What the code at @pc does next: SAYS_. That takes a system call, so it is remembered for all walks. */
__u32 code__says(__u64 pc);

#endif
