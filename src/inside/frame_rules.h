/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the unwind rule of an address by the call frame information that is mapped with its code (.eh_frame, by
 * .eh_frame_hdr), for a process beside which nobody compiles tables.
 */
#ifndef ALLOCPROF_INSIDE_FRAME_RULES_H
#define ALLOCPROF_INSIDE_FRAME_RULES_H

#include <linux/types.h>
#include <stdbool.h>

#include "cfi_rules.h"
#include "code.h"
#include "unwind_abi.h"

/* Memory to work in, which the stack of a thread may lack. */
struct frame_work {
	__u64 address;
	/* Set by the caller: another thread may unmap the address's file meanwhile, since nothing but a guess says
	 * that this thread is in it. Then entries are read as copies, and longer ones are left out. */
	bool may_be_unmapped;
	bool is_gone; /* an entry could not be read */
	__u8 cie_copy[512], fde_copy[4096];
	struct unwind_rule rule;
	struct cfi_section section;
	struct cfi_cie cie;
	struct cfi_fde fde;
	struct cfi_state state;
	struct cfi_machine machine;
};

/* Stores the rule at @address, which is in @range; UNWIND_CFA_NONE if there is none. Returns
 * UNWIND_TABLE_READY, or UNWIND_TABLE_NONE if the file has no call frame information that can be used. */
enum unwind_table_state frame_rules__find(struct frame_work *work, __u64 address,
					  const struct code_range *range, struct unwind_rule *out);

/* Returns the address at which the function begins that has @address, or the last one before it; 0: it is not known. */
__u64 frame_rules__function(struct frame_work *work, __u64 address, const struct code_range *range);

/* Returns whether @offset in the file of @module, in which frame_rules__find() was called, is in code at the
 * file's entry point that has no call frame information. */
bool frame_rules__is_entry(__u32 module, __u64 offset);

#endif
