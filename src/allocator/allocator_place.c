// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses the instruction of a function that gets the probe: one that the kernel emulates, if nothing has changed
 * the arguments before it. */
#include "allocator_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Which part of the caller's state the instruction may change, a clause for the user; NULL:
 * none. */
static const char *harm(const struct disasm_insn *insn)
{
	switch (insn->class) {
	case DISASM_JUMP_CONDITIONAL:
	case DISASM_JUMP:
	case DISASM_JUMP_INDIRECT:
	case DISASM_RET:
	case DISASM_TRAP:
		return "leaves the straight line";
	default:
		break;
	}
	if (insn->effects & DISASM_WRITES_ARGUMENT)
		return "writes an argument register";
	if (insn->effects & DISASM_WRITES_SP)
		return "writes the stack pointer";
	if (insn->effects & DISASM_WRITES_MEMORY)
		return "writes memory";
	return insn->effects ? "is not known to be harmless" : NULL;
}

/* Finds the first emulated instruction at which the state is as at the entry. -ENOENT, with @reason
 * set, if there is none. */
static int find_emulated(const struct allocator_reader *reader, const struct site *site,
			 struct disasm_insn *out, char *reason, size_t size)
{
	char text[sizeof(site->instruction)];
	__u64 vaddr = site->entry_vaddr;

	while (vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE) {
		struct disasm_insn insn;
		const char *what;

		if (reader__decode_at(reader, vaddr, &insn)) {
			snprintf(reason, size,
				 "no instruction can be decoded at 0x%llx, before any emulated one",
				 (unsigned long long)vaddr);
			return -ENOENT;
		}
		if (insn.emulated) {
			*out = insn;
			return 0;
		}
		what = harm(&insn);
		if (what) {
			disasm_insn__text(&insn, text, sizeof(text));
			snprintf(reason, size, "`%s` %s before any emulated instruction", text,
				 what);
			return -ENOENT;
		}
		vaddr += insn.length;
	}
	snprintf(reason, size, "no emulated instruction in the first %d bytes", SITE_MAX_DISTANCE);
	return -ENOENT;
}

/* Whether a branch targets (entry, @distance]: it would cause hits without a call. */
static bool is_branched_into(__u64 branched_to, __u64 distance, __u64 *where)
{
	for (__u64 i = 1; i <= distance; i++) {
		if (!(branched_to >> (i - 1) & 1))
			continue;
		*where = i;
		return true;
	}
	return false;
}

void reader__place(const struct allocator_reader *reader, struct site *site, __u64 branched_to,
		   enum site_policy policy)
{
	char reason[sizeof(site->reason)] = "";
	struct disasm_insn insn = { 0 };
	__u64 where;

	if (policy == SITE_ENTRY) {
		snprintf(reason, sizeof(reason), "the entry was requested");
	} else if (!find_emulated(reader, site, &insn, reason, sizeof(reason))) {
		if (!is_branched_into(branched_to, insn.vaddr - site->entry_vaddr, &where))
			goto found;
		disasm_insn__text(&insn, site->instruction, sizeof(site->instruction));
		snprintf(reason, sizeof(reason),
			 "a branch leads to entry+%llu, at or before the emulated `%s`",
			 (unsigned long long)where, site->instruction);
	}
	if (reader__decode_at(reader, site->entry_vaddr, &insn))
		insn = (struct disasm_insn){ .vaddr = site->entry_vaddr };
found:
	site->probe_vaddr = insn.vaddr;
	site->probe_offset = site->entry_offset + (insn.vaddr - site->entry_vaddr);
	site->emulated = insn.emulated;
	disasm_insn__text(&insn, site->instruction, sizeof(site->instruction));
	if (!insn.emulated)
		memcpy(site->reason, reason, sizeof(site->reason));
}
