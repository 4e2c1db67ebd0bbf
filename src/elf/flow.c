// SPDX-License-Identifier: GPL-3.0-or-later
#include "flow.h"

#include <errno.h>
#include <stdint.h>

#include "array.h"
#include "cleanup.h"

struct walk {
	const struct elf_text *text;
	const __u64 *starts;
	size_t n_starts;
	unsigned char *seen; /* bitmap: decoded bytes of the text */
	__u64 *pending;	     /* jump targets; each instruction adds at most one */
	size_t n_pending;
	size_t n_insns;
	flow_fn fn;
	void *arg;
};

/* Returns the first start behind @vaddr. */
static __u64 next_start(const struct walk *walk, __u64 vaddr)
{
	size_t low = ARRAY_LOWER_BOUND(walk->n_starts, i, walk->starts[i] <= vaddr);

	return low < walk->n_starts ? walk->starts[low] : UINT64_MAX;
}

static bool mark(struct walk *walk, __u64 at)
{
	unsigned char bit = (unsigned char)(1u << (at & 7));

	if (walk->seen[at >> 3] & bit)
		return false;
	walk->seen[at >> 3] |= bit;
	return true;
}

/* Decodes from @vaddr until control leaves unconditionally. */
static void walk_run(struct walk *walk, __u64 vaddr)
{
	const struct elf_text *text = walk->text;
	__u64 end = next_start(walk, vaddr);

	while (vaddr < end && vaddr - text->vaddr < text->size) {
		__u64 at = vaddr - text->vaddr;
		struct disasm_insn insn;
		enum flow_step step;

		if (!mark(walk, at) || walk->n_insns == FLOW_MAX_INSNS)
			return;
		if (disasm__decode(text->code + at, text->size - at, vaddr, &insn))
			return;
		walk->n_insns++;
		step = walk->fn(&insn, walk->arg);
		if (step == FLOW_FOLLOW && insn.has_target &&
		    (insn.class == DISASM_JUMP || insn.class == DISASM_JUMP_CONDITIONAL))
			walk->pending[walk->n_pending++] = insn.target;
		if (step == FLOW_STOP || !disasm_insn__continues(&insn))
			return;
		vaddr += insn.length;
	}
}

int flow__walk(const struct elf_text *text, const __u64 *starts, size_t n_starts, __u64 entry,
	       flow_fn fn, void *arg)
{
	/* calloc() maps zeroed pages only when they are used, so only the function's part of a
	 * large text costs memory. */
	_cleanup_(free_ptr) unsigned char *seen = calloc(1, text->size / 8 + 1);
	_cleanup_(free_ptr) __u64 *pending = calloc(FLOW_MAX_INSNS + 1, sizeof(*pending));
	struct walk walk = {
		.text = text,
		.starts = starts,
		.n_starts = n_starts,
		.seen = seen,
		.pending = pending,
		.fn = fn,
		.arg = arg,
	};

	if (entry - text->vaddr >= text->size)
		return -ENOENT;
	if (!seen || !pending)
		return -ENOMEM;
	pending[walk.n_pending++] = entry;
	while (walk.n_pending > 0)
		walk_run(&walk, pending[--walk.n_pending]);
	return 0;
}
