// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses the instruction of a function that gets the probe: one that the kernel emulates, if the arguments that the
 * BPF programs read are still in registers there, and nothing else of what they read has changed. */
#include "allocator_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(SITE_ARGUMENTS == DISASM_ARGUMENTS, "the same arguments");

/* Says in which registers a function's arguments are, instruction by instruction from its entry on. */
struct arguments {
	/* Arguments that are read, and those of them that are only read from their own registers:
	 * masks, 1 << number. */
	unsigned int read, fixed;
	/* By general register: the argument that it has, 0: none. */
	unsigned char held[DISASM_REGISTERS];
};

/* As hit__read_arguments(), hit__read_described_arguments() and live__follow() read them at a hit. */
static void set_read(struct arguments *arguments, const struct allocator *allocator,
		     const struct site *site)
{
	const struct interface_function *interface = site->interface;

	arguments->read = 1U << interface->size | 1U << interface->count | 1U << interface->pointer;
	if (!allocator->is_described) {
		/* With the alignment, by which a tail call is foreseen. */
		if (site->function == AP_ALIGNED_ALLOC || site->function == AP_MEMALIGN)
			arguments->read |= 1U << 1;
		else if (site->function == AP_POSIX_MEMALIGN)
			arguments->read |= 1U << 1 | 1U << 2;
		arguments->fixed = arguments->read;
	} else if (site->function == AP_POSIX_MEMALIGN) {
		arguments->read |= 1U << 1;
		arguments->fixed = 1U << 1;
	}
}

static void arguments__begin(struct arguments *arguments, const struct allocator *allocator,
			     const struct site *site)
{
	*arguments = (struct arguments){ 0 };
	set_read(arguments, allocator, site);
	for (unsigned int n = 1; n <= DISASM_ARGUMENTS; n++)
		arguments->held[disasm__argument_register(n)] = (unsigned char)n;
}

static void arguments__pass(struct arguments *arguments, const struct disasm_insn *insn)
{
	unsigned char copied = insn->is_copy ? arguments->held[insn->from] : 0;

	for (unsigned int i = 0; i < DISASM_REGISTERS; i++)
		if (insn->written >> i & 1)
			arguments->held[i] = 0;
	if (insn->is_copy)
		arguments->held[insn->to] = copied;
}

/* The number of the argument whose register now has argument @number, its own if that is one of them; 0: none has. */
static unsigned int arguments__find(const struct arguments *arguments, unsigned int number)
{
	if (arguments->held[disasm__argument_register(number)] == number)
		return number;
	for (unsigned int n = 1; n <= DISASM_ARGUMENTS; n++)
		if (!(arguments->fixed >> number & 1) &&
		    arguments->held[disasm__argument_register(n)] == number)
			return n;
	return 0;
}

static bool arguments__are_there(const struct arguments *arguments)
{
	for (unsigned int n = 1; n <= DISASM_ARGUMENTS; n++)
		if (arguments->read >> n & 1 && !arguments__find(arguments, n))
			return false;
	return true;
}

/* Which part of the caller's state beside arguments the instruction may change, a clause for the
 * user; NULL: none. */
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
	if (insn->effects & DISASM_WRITES_SP)
		return "writes the stack pointer";
	if (insn->effects & DISASM_WRITES_MEMORY)
		return "writes memory";
	return insn->effects ? "is not known to be harmless" : NULL;
}

static void explain(const struct disasm_insn *insn, const char *what, char *reason, size_t size)
{
	char text[sizeof(((struct site *)0)->instruction)];

	disasm_insn__text(insn, text, sizeof(text));
	snprintf(reason, size, "`%s` %s before any emulated instruction", text, what);
}

/* Finds the first emulated instruction at which what the programs read is as at the entry, or
 * arguments are in registers of others. -ENOENT, with @reason set, if there is none. */
static int find_emulated(const struct allocator_reader *reader, const struct site *site,
			 struct arguments *arguments, struct disasm_insn *out, char *reason,
			 size_t size)
{
	__u64 vaddr = site->entry_vaddr;
	bool are_there = true;

	arguments__begin(arguments, reader->allocator, site);
	while (vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE) {
		struct disasm_insn insn;
		const char *what;

		if (reader__decode_at(reader, vaddr, &insn)) {
			snprintf(reason, size,
				 "no instruction can be decoded at 0x%llx, before any emulated one",
				 (unsigned long long)vaddr);
			return -ENOENT;
		}
		if (insn.emulated && are_there) {
			*out = insn;
			return 0;
		}
		what = harm(&insn);
		if (what) {
			if (are_there)
				explain(&insn, what, reason, size);
			return -ENOENT;
		}
		arguments__pass(arguments, &insn);
		if (!arguments__are_there(arguments) && are_there)
			explain(&insn, "writes the register of an argument", reason, size);
		are_there = arguments__are_there(arguments);
		vaddr += insn.length;
	}
	if (are_there)
		snprintf(reason, size, "no emulated instruction in the first %d bytes",
			 SITE_MAX_DISTANCE);
	return -ENOENT;
}

static void note_moved(struct site *site, const struct arguments *arguments)
{
	for (unsigned int n = 1; n <= DISASM_ARGUMENTS; n++)
		if (arguments->read >> n & 1)
			site->argument_at[n] = (__u8)arguments__find(arguments, n);
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
	struct arguments arguments;
	__u64 where;

	if (policy == SITE_ENTRY) {
		snprintf(reason, sizeof(reason), "the entry was requested");
	} else if (!find_emulated(reader, site, &arguments, &insn, reason, sizeof(reason))) {
		if (!is_branched_into(branched_to, insn.vaddr - site->entry_vaddr, &where)) {
			note_moved(site, &arguments);
			goto found;
		}
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
