/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The instructions that a function may run by itself: along its branches, not into its calls. */
#ifndef ALLOCPROF_FLOW_H
#define ALLOCPROF_FLOW_H

#include "disasm.h"
#include "elf_file.h"

/* Instructions of one function at the most; the rest of a longer one is left out. */
#define FLOW_MAX_INSNS 50000

enum flow_step {
	FLOW_PASS,   /* on to the next instruction, not to where it jumps to */
	FLOW_FOLLOW, /* to both */
	FLOW_STOP,   /* to neither */
};

/* Sees each instruction once. Returns which way the walk goes on. */
typedef enum flow_step (*flow_fn)(const struct disasm_insn *insn, void *arg);

/*
 * Walks from @entry, inside @text only. @starts (sorted, @n_starts of them) are addresses where
 * functions begin: control does not run into them from the instruction before, which is how a call
 * that never returns ends a function. -ENOENT: @entry is not in @text.
 */
int flow__walk(struct disasm *disasm, const struct elf_text *text, const __u64 *starts,
	       size_t n_starts, __u64 entry, flow_fn fn, void *arg);

#endif
