/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of the part of the stack that a walk reads. */
#ifndef ALLOCPROF_WINDOW_BPF_H
#define ALLOCPROF_WINDOW_BPF_H

#include "scratch.bpf.h"
#include "trampoline.bpf.h"

/* Copies up to @wanted bytes of stack from @start. Since a read that crosses the stack's top fails as a whole, and takes
 * as long as a page fault, it is retried up to the end of the next page, and then of this page; where it succeeded is
 * remembered, so that the next copies end there. */
int window__fill(struct scratch *scratch, __u64 start, __u32 wanted);

/* Reads the word at @address; the stack goes up from @sp. */
static __always_inline int window__read(struct scratch *scratch, __u64 sp, __u64 address,
					__u64 *value)
{
	__u64 offset = address - scratch->window_start;

	if (offset >= scratch->window_bytes || scratch->window_bytes - offset < 8 || (offset & 7)) {
		scratch->absent = 0;
		if (address & 7)
			return -1;
		/* In a large frame the word is far up: begin the window a little below it, but not
		 * on the page before, which may be part of an array that was never touched. */
		if (address - sp >= sizeof(scratch->window) / 2) {
			sp = address - 64;
			if ((sp ^ address) & ~4095ULL)
				sp = address & ~4095ULL;
		}
		/* Something may have been mapped there since. */
		if (address >= scratch->unreadable)
			scratch->unreadable = 0;
		if (window__fill(scratch, sp, sizeof(scratch->window)))
			return -1;
		offset = address - scratch->window_start;
		if (offset >= scratch->window_bytes || scratch->window_bytes - offset < 8) {
			scratch->absent = address;
			return -1;
		}
	}
	*value = scratch->window[(offset >> 3) & (WINDOW_WORDS - 1)];
	return 0;
}

/* window__read() of a return address; returns the original one if a return probe replaced it. */
static __always_inline int window__read_pc(struct scratch *scratch, __u64 sp, __u64 address,
					   __u64 *pc)
{
	if (window__read(scratch, sp, address, pc))
		return -1;
	if (*pc && *pc == scratch->trampoline)
		*pc = trampoline__real(address);
	return 0;
}

#endif
