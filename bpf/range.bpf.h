/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Code ranges and their unwind tables, by address. */
#ifndef ALLOCPROF_RANGE_BPF_H
#define ALLOCPROF_RANGE_BPF_H

#include "arch.bpf.h"
#include "module.bpf.h"
#include "scratch.bpf.h"
#include "tables.bpf.h"

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

static __always_inline bool range__holds(const struct code_range *range, __u64 address)
{
	return address >= range->start && address < range->end;
}

/* Loads the code range around @address into the scratch; returns its index, or minus enum
 * vma_result. */
__noinline int range__load(struct scratch *scratch, __u64 address, __u32 pid)
{
	struct code_range *range;
	struct unwind_slice *slice;
	struct unwind_table *table;
	__u64 offset;
	struct vma_answer answer = {};
	const struct vma *vma = &answer.vma;
	__u32 module, at;
	int err;

	if (!scratch)
		return -VMA_NONE;
	err = vma__find(&answer, scratch->process, pid, address, scratch->generation, scratch->seq);
	if (err)
		return -err;
	at = scratch->next_range++ & (SCRATCH_MAPPINGS - 1);
	range = &scratch->ranges[at];
	range->start = vma->start;
	range->end = vma->end;
	range->bias = vma->bias;
	range->module = vma->module;
	range->within = within__has(vma->module);
	range->state = UNWIND_TABLE_NONE;
	module = vma->module;
	if (!module)
		return at;
	table = bpf_map_lookup_elem(&unwind_tables, &module);
	if (!table)
		return at;
	range->state = ARCH_LOAD_ACQUIRE(table->state);
	if (range->state == UNWIND_TABLE_AWAITED) {
		range->end = 0; /* valid for this frame only: look again next time */
		return at;
	}
	if (range->state != UNWIND_TABLE_READY)
		return at;
	offset = address + vma->bias;
	slice = slice__find(table, offset);
	if (!slice || offset - slice->file_offset >= slice->size) {
		/* Code that no call frame information covers. */
		range->state = UNWIND_TABLE_NONE;
		range->start = address;
		range->end = address + 1;
		return at;
	}
	range->slice = *slice;
	if (slice->file_offset - vma->bias > range->start)
		range->start = slice->file_offset - vma->bias;
	if (slice->file_offset + slice->size - vma->bias < range->end)
		range->end = slice->file_offset + slice->size - vma->bias;
	return at;
}

/* Index of the range that holds @address, from the scratch or loaded; or minus enum vma_result. */
static __always_inline int range__find(struct scratch *scratch, struct walk *walk, __u64 address)
{
	if (range__holds(&scratch->ranges[walk->range & (SCRATCH_MAPPINGS - 1)], address))
		return walk->range;
	for (int i = 0; i < SCRATCH_MAPPINGS; i++)
		if (range__holds(&scratch->ranges[i], address))
			return i;
	return range__load(scratch, address, walk->pid);
}

#endif
