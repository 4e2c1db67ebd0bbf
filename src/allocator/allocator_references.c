// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the instructions by which a program leads to the allocator that it contains: direct calls and
 * jumps, and those that take a function's address. */
#include <errno.h>
#include <stdlib.h>

#include "allocator_internal.h"
#include "array.h"

/* Maximum number of functions that are decoded a second time. */
#define MAX_AGAIN 1000

struct reference_search {
	struct allocator_reader *reader;
	size_t room;
	/* Code is decoded from the beginning of its function on, in the order of the addresses:
	 * @vaddr is that of the next instruction. */
	__u64 function, vaddr;
	unsigned int n_again;
	bool is_fixed; /* the program is mapped where its file says */
	int err;
};

enum clarity {
	NO_REFERENCE,
	REFERENCE,
	UNCLEAR,
};

/* Decodes the instruction that the operand's bytes are a part of. Returns false if they are in no known
 * function, or the code cannot be decoded. */
static bool decode_around(struct reference_search *search, const struct disasm_operand *operand,
			  struct disasm_insn *insn)
{
	__u64 function = reader__function_at(search->reader, operand->next - 1);

	if (!function)
		return false;
	if (function != search->function || operand->next <= search->vaddr) {
		if (function == search->function && ++search->n_again > MAX_AGAIN)
			return false;
		search->function = search->vaddr = function;
	}
	*insn = (struct disasm_insn){ 0 };
	while (search->vaddr < operand->next) {
		if (reader__decode_at(search->reader, search->vaddr, insn))
			return false;
		search->vaddr += insn->length;
	}
	return true;
}

/* Returns whether an instruction leads to the target by the operand. Bytes that look like such an instruction
 * and are none, as decoded from the function's beginning, are unclear: there may be data in the code. */
static enum clarity clarity_of(struct reference_search *search,
			       const struct disasm_operand *operand)
{
	struct disasm_insn insn;
	bool is_known = decode_around(search, operand, &insn), is_end;

	if (!is_known)
		return UNCLEAR;
	is_end = search->vaddr == operand->next;
	switch (operand->kind) {
	case DISASM_DISTANCE:
		return is_end && disasm_insn__has_distance(&insn) ? REFERENCE : UNCLEAR;
	case DISASM_SHORT_DISTANCE:
		return is_end && insn.has_target && insn.target == operand->target ? UNCLEAR
										   : NO_REFERENCE;
	default:
		/* An address of eight bytes ends in four zeros. */
		is_end |= search->vaddr == operand->next + 4;
		return is_end && insn.length > 4 && !insn.has_target ? UNCLEAR : NO_REFERENCE;
	}
}

static bool addresses_have(const struct addresses *sorted, __u64 vaddr)
{
	size_t at = ARRAY_LOWER_BOUND(sorted->n, i, sorted->at[i] < vaddr);

	return at < sorted->n && sorted->at[at] == vaddr;
}

static void add_reference(struct reference_search *search, const struct disasm_operand *operand)
{
	struct allocator *allocator = search->reader->allocator;
	size_t n = allocator->n_references;

	/* Only a hostile file has so many, or such as overlap. */
	if (n == MAX_REFERENCES || (n && operand->next - 4 < allocator->references[n - 1].next)) {
		allocator->has_unclear_references = true;
		return;
	}
	search->err = array__reserve(&allocator->references, &search->room, n + 1,
				     sizeof(*allocator->references));
	if (!search->err)
		allocator->references[allocator->n_references++] =
			(struct allocator_reference){ operand->next, operand->target };
}

static void visit_operand(const struct disasm_operand *operand, void *arg)
{
	struct reference_search *search = arg;
	struct allocator_reader *reader = search->reader;
	enum clarity clarity;

	if (search->err || (operand->kind == DISASM_ADDRESS && !search->is_fixed) ||
	    !allocator__site_at(reader->allocator, operand->target))
		return;
	/* The allocator's own calls, and jumps from one of its functions to another one. */
	if (addresses_have(&reader->returns, operand->next) ||
	    addresses_have(&reader->jumps, operand->next) || reader__is_core(reader, operand->next))
		return;
	clarity = clarity_of(search, operand);
	reader->allocator->has_unclear_references |= clarity == UNCLEAR;
	if (clarity == REFERENCE)
		add_reference(search, operand);
}

int reader__find_references(struct allocator_reader *reader)
{
	struct reference_search search = { .reader = reader };

	reader->allocator->is_in_program = elf_file__is_program(reader->elf);
	if (!reader->allocator->is_in_program || reader->allocator->definition)
		return 0;
	search.is_fixed = elf_file__is_fixed(reader->elf);
	reader->allocator->has_unclear_references = reader->n_texts == MAX_TEXTS;
	addresses__sort(&reader->starts);
	addresses__sort(&reader->jumps);
	for (size_t i = 0; i < reader->n_texts && !search.err; i++)
		disasm__scan_operands(reader->texts[i].code, reader->texts[i].size,
				      reader->texts[i].vaddr, reader->lowest_entry,
				      reader->highest_entry, visit_operand, &search);
	return search.err;
}
