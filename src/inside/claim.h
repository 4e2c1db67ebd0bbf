/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call that has a thread's memory for itself. A signal's handler may interrupt it, call the allocator again, and leave by a jump
 * (siglongjmp(3)), after which nobody gives the memory back.
 */
#ifndef ALLOCPROF_INSIDE_CLAIM_H
#define ALLOCPROF_INSIDE_CLAIM_H

#include <linux/types.h>
#include <stdbool.h>

/* Lies in the stack of the call. */
struct claim {
	__u64 sign; /* CLAIM_SIGN ^ the struct's address */
	/* The frame of the function that the program has called: its caller's frame pointer, and the return address. */
	const __u64 *frame;
	__u64 return_address;
};

#define CLAIM_SIGN 0x6d69616c6361704fULL

/* Returns the claim's address. */
static inline __u64 claim__sign(struct claim *claim, const __u64 *frame)
{
	__u64 address = (__u64)claim;

	claim->frame = frame;
	claim->return_address = frame[1];
	__atomic_store_n(&claim->sign, CLAIM_SIGN ^ address, __ATOMIC_RELEASE);
	/* cppcheck-suppress uninitvar ; what was filled here is not read. */
	return address;
}

/* Afterwards, or its place would look as that of an earlier call that a jump has left. */
static inline void claim__end(struct claim *claim)
{
	__atomic_store_n(&claim->sign, 0, __ATOMIC_RELEASE);
}

/* Whether the call whose claim is at @address, and which has not ended, will never go on. False if it may. @now is a claim of the
 * calling function. */
bool claim__is_gone(__u64 address, const struct claim *now);

#endif
