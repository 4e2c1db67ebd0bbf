/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a walk up the stack, its look-ups in the unwind tables (unwind_abi.h), and its copy of the stack. */
#ifndef ALLOCPROF_WALK_BPF_H
#define ALLOCPROF_WALK_BPF_H

#include "arch.bpf.h"
#include "arch.bpf.h"
#include "kernel.h"
#include "scratch.bpf.h"
#include "trampoline.bpf.h"
#include "unwind_abi.h"

/* One value of 1 MiB, so that a search inside it is pointer arithmetic, without a map look-up per
 * step. */
struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_chunk));
};

DECLARE_MAPS(unwind_chunks, UNWIND_MAX_CHUNKS, struct chunk_map);

DECLARE_MAP(unwind_tables, ARRAY, UNWIND_MAX_MODULES, 0, __u32, struct unwind_table);

DECLARE_MAP(unwind_slices, ARRAY, UNWIND_MAX_SLICES, 0, __u32, struct unwind_slice);

DECLARE_MAP(unwind_rules, ARRAY, UNWIND_MAX_RULES_LOADED, 0, __u32, struct unwind_rule);

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
		/* The frame is large, and the word far up: the window begins a little below the
		 * word, but not on the page before, which may be part of an array that was never
		 * touched. */
		if (address - sp >= sizeof(scratch->window) / 2) {
			sp = address - 64;
			if ((sp ^ address) & ~4095ULL)
				sp = address & ~4095ULL;
		}
		/* Memory may have been mapped there since. */
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

/* Works like window__read(), for a return address: returns the original one if a return probe has
 * replaced it. */
static __always_inline int window__read_pc(struct scratch *scratch, __u64 sp, __u64 address,
					   __u64 *pc)
{
	if (window__read(scratch, sp, address, pc))
		return -1;
	*pc = arch__code_address(*pc, scratch->code_mask);
	if (*pc && *pc == scratch->trampoline)
		*pc = trampoline__real(address);
	return 0;
}

enum vma_result {
	VMA_FOUND,
	VMA_NONE, /* no executable mapping */
	VMA_BUSY, /* bpf_find_vma() or the ring buffer failed: the next hit tries again */
};

/* Loads the code range around @address into the scratch. Returns its index, or minus enum
 * vma_result. */
int range__load(struct scratch *scratch, __u64 address, __u32 pid);

/* Waits while bpf_find_vma() fails since another thread of the process maps memory. Returns 1 if
 * range__load() will succeed now. */
int vma__await(__u64 address, __u32 process, __u32 pid, __u32 generation, __u32 seq);

/* Waits for a limited time until @module's table is compiled. Returns 1 if it is. */
int table__await(__u32 module);

/* Unwinds frames from the state in @scratch->walk until the walk ends. Global, like the functions
 * that it calls, so that the verifier checks it once, and not for all states in which the programs
 * call it. */
int walk__frames(struct scratch *scratch);

/* Unwinds one frame by look-ups. Returns 1 if the walk ends. */
int walk__step(struct scratch *scratch, struct walk *walk, __u32 index);

#endif
