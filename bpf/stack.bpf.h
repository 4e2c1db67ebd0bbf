/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks: scratch to build them in, the walk, and their hash. */
#ifndef ALLOCPROF_STACK_BPF_H
#define ALLOCPROF_STACK_BPF_H

#include "hit.bpf.h"
#include "module.bpf.h"

/* A stack under construction, laid out as the record that it may become. */
struct scratch {
	__u32 taken;
	__u32 pad;
	struct ap_stack_record record; /* of a multiple of 8 bytes: the frames follow it closely */
	struct ap_frame frames[AP_MAX_DEPTH];
};

/* AP_SCRATCH_SLOTS per possible CPU; the size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AP_SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/*
 * Programs run with migration off but can be preempted by a task whose program runs on the same CPU,
 * so a slot is claimed, not assumed. NULL where all are held by preempted programs.
 */
static __always_inline struct scratch *scratch__claim(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	for (__u32 i = 0; i < AP_SCRATCH_SLOTS; i++) {
		__u32 slot = cpu * AP_SCRATCH_SLOTS + i;
		struct scratch *scratch;

		if (i >= config.scratch_slots)
			break;
		scratch = bpf_map_lookup_elem(&scratches, &slot);
		if (scratch && __sync_val_compare_and_swap(&scratch->taken, 0, 1) == 0)
			return scratch;
	}
	return NULL;
}

static __always_inline void scratch__release(struct scratch *scratch)
{
	__sync_lock_test_and_set(&scratch->taken, 0);
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

struct walk {
	struct scratch *scratch;
	struct process *process;
	__u64 address;
	__u64 sp;
	__u64 fp;
	__u64 hash;
	__u32 n_frames;
	__u32 end;
};

static long walk_frame(__u32 index, struct walk *walk)
{
	struct ap_frame *frame;
	__u64 slots[2];

	if (index >= AP_MAX_DEPTH) /* bpf_loop() stops before; the verifier wants to see it */
		return 1;
	frame = &walk->scratch->frames[index];
	if (!frame__resolve(frame, walk->process, walk->address)) {
		walk->end = AP_END_NO_MAPPING;
		return 1;
	}
	walk->hash = mix(walk->hash ^ frame->offset ^ ((__u64)frame->module << 48));
	walk->n_frames = index + 1;

	if (!walk->fp) {
		walk->end = AP_END_COMPLETE;
		return 1;
	}
	if (walk->fp < walk->sp || (walk->fp & 7)) {
		walk->end = AP_END_BAD_FRAME;
		return 1;
	}
	if (bpf_probe_read_user(slots, sizeof(slots), (void *)walk->fp)) {
		walk->end = AP_END_UNREADABLE;
		return 1;
	}
	walk->sp = walk->fp + sizeof(slots);
	walk->fp = slots[0];
	walk->address = slots[1];
	if (!walk->address) {
		walk->end = AP_END_COMPLETE;
		return 1;
	}
	return 0;
}

/*
 * Fills @scratch with the frames of the thread that stands at @hit, the allocator's caller first,
 * and their hash. The one place that knows how stacks are walked: by frame pointers for now, the
 * caller taken from the stack's top, where the called function has not yet made a frame.
 */
static __always_inline void stack__capture(struct scratch *scratch, const struct hit *hit,
					   struct process *process, struct pt_regs *regs)
{
	struct walk walk = {
		.scratch = scratch,
		.process = process,
		.address = hit->return_address,
		.sp = arch__caller_sp(regs),
		.fp = arch__fp(regs),
		.end = AP_END_MAX_DEPTH,
	};

	process__refresh(process);
	bpf_loop(config.max_depth, walk_frame, &walk, 0);
	scratch->record.type = AP_RECORD_STACK;
	scratch->record.n_frames = walk.n_frames;
	scratch->record.process = process->id;
	scratch->record.end = walk.end;
	scratch->record.stack = mix(walk.hash ^ ((__u64)walk.end << 32) ^ walk.n_frames);
}

#endif
