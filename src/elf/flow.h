/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks the instructions of a function along its branches, but not into its calls. */
#ifndef ALLOCPROF_FLOW_H
#define ALLOCPROF_FLOW_H

#include "disasm.h"
#include "elf_file.h"

/* Largest number of instructions per function; the walk stops there. */
#define FLOW_MAX_INSNS 50000

enum flow_step {
	FLOW_PASS,   /* continue with the next instruction, not with the jump's target */
	FLOW_FOLLOW, /* continue with both */
	FLOW_STOP,   /* continue with neither */
};

/* Called once for each instruction. Returns how the walk continues. */
typedef enum flow_step (*flow_fn)(const struct disasm_insn *insn, void *arg);

/*
 * Walks from @entry, inside of @text only. @starts (sorted, @n_starts of them) are addresses of
 * functions; control does not fall through into them, so a noreturn call ends a function. Fails
 * with -ENOENT if @entry is not in @text.
 */
int flow__walk(const struct elf_text *text, const __u64 *starts, size_t n_starts, __u64 entry,
	       flow_fn fn, void *arg);

#endif
