// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses where a function is probed: the instruction near its entry, and the instructions where
 * it returns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "array.h"
#include "error.h"
#include "definitions.h"

/* Chooses the instruction of a function that gets the probe: one that the kernel emulates, if at
 * that point registers still hold the arguments that the BPF programs read, and nothing else that
 * the programs read has changed. */

_Static_assert(SITE_ARGUMENTS == DISASM_ARGUMENTS && SITE_REGISTERS == DISASM_RESULT,
	       "the same registers");

/* Says in which registers a function's arguments are, instruction by instruction from its entry on. */
struct arguments {
	/* Masks (1 << number) of the arguments that the programs read, and of those that the
	 * programs can read only from the arguments' own registers. */
	unsigned int read, fixed;
	/* held[r] is the argument that general register r holds; 0 if it holds none. */
	unsigned char held[DISASM_REGISTERS];
};

/* Sets which arguments the BPF programs read at a hit: this follows hit__read_arguments(),
 * hit__read_described_arguments() and live__follow(). */
static void set_read(struct arguments *arguments, const struct allocator *allocator,
		     const struct site *site)
{
	const struct interface_function *interface = site->interface;

	arguments->read = 1U << interface->size | 1U << interface->count | 1U << interface->pointer;
	if (!allocator->is_described) {
		/* The programs also read the alignment, by which they foresee a tail call. */
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

/* Returns the number of the register that holds argument @number at this point, preferably the
 * argument's own; 0 if none does. */
static unsigned int arguments__find(const struct arguments *arguments, unsigned int number)
{
	if (arguments->held[disasm__argument_register(number)] == number)
		return number;
	for (unsigned int n = 1; n <= DISASM_RESULT; n++)
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

/* Returns whether the instruction writes only to memory of the function's own frame. The stack
 * pointer is @lowered bytes below the return address. */
static bool writes_own_frame(const struct disasm_insn *insn, __u32 lowered)
{
	return insn->writes_frame && insn->frame_offset >= -SITE_MAX_LOWERED &&
	       insn->frame_offset + (__s64)insn->frame_bytes <= (__s64)lowered;
}

/* Returns a clause for the user that names the part of the caller's state, beside arguments, that
 * the instruction may change; NULL if it changes none. */
static const char *harm(const struct disasm_insn *insn, __u32 lowered)
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
	if ((insn->effects & DISASM_WRITES_MEMORY) && !writes_own_frame(insn, lowered))
		return "writes memory";
	if (insn->effects & ~DISASM_WRITES_MEMORY)
		return "is not known to be harmless";
	return insn->fp != DISASM_FP_KEPT ? "writes the frame pointer" : NULL;
}

/* Returns the number of bytes by which the instruction lowers the stack pointer, if it does
 * nothing else; otherwise 0. */
static __u32 bytes_lowered(const struct disasm_insn *insn)
{
	if (insn->class != DISASM_OTHER || insn->effects != DISASM_WRITES_SP ||
	    insn->sp != DISASM_SP_MOVED || insn->fp != DISASM_FP_KEPT || insn->sp_offset % 8 ||
	    insn->sp_offset >= 0 || insn->sp_offset < -SITE_MAX_LOWERED)
		return 0;
	return (__u32)-insn->sp_offset;
}

static void explain(const struct disasm_insn *insn, const char *what, char *reason, size_t size)
{
	char text[sizeof(((struct site *)0)->instruction)];

	disasm_insn__text(insn, text, sizeof(text));
	snprintf(reason, size, "`%s` %s before any emulated instruction", text, what);
}

/* Finds the first instruction that the kernel emulates and at which all that the programs read is
 * as at the entry, except that arguments may be in other registers and the stack pointer is
 * *@lowered bytes lower. Returns 0, or -ENOENT, with @reason set, if there is none. */
static int find_emulated(const struct allocator_reader *reader, const struct site *site,
			 struct arguments *arguments, struct disasm_insn *out, __u32 *lowered,
			 char *reason, size_t size)
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
		what = harm(&insn, *lowered);
		if (bytes_lowered(&insn) && *lowered + bytes_lowered(&insn) <= SITE_MAX_LOWERED) {
			*lowered += bytes_lowered(&insn);
		} else if (what) {
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

static void note_lowered(const struct allocator_reader *reader, struct site *site, __u32 lowered)
{
	struct disasm_insn entry;

	site->lowered_bytes = lowered;
	if (lowered && !reader__decode_at(reader, site->entry_vaddr, &entry))
		disasm_insn__text(&entry, site->entry_instruction, sizeof(site->entry_instruction));
}

static void note_moved(struct site *site, const struct arguments *arguments)
{
	for (unsigned int n = 1; n <= DISASM_ARGUMENTS; n++)
		if (arguments->read >> n & 1)
			site->argument_at[n] = (__u8)arguments__find(arguments, n);
}

/* Returns whether a branch targets an address 1 to @distance bytes behind the entry, which would
 * cause hits without a call. Writes the number of bytes to *@where. @branched_to is a mask (1 <<
 * number - 1). */
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

void reader__place_probe(const struct allocator_reader *reader, struct site *site,
			 __u64 branched_to, enum site_policy policy)
{
	char reason[sizeof(site->reason)] = "";
	struct disasm_insn insn = { 0 };
	struct arguments arguments;
	__u32 lowered = 0;
	__u64 where;

	if (policy == SITE_ENTRY) {
		snprintf(reason, sizeof(reason), "the entry was requested");
	} else if (!find_emulated(reader, site, &arguments, &insn, &lowered, reason,
				  sizeof(reason))) {
		if (!is_branched_into(branched_to, insn.vaddr - site->entry_vaddr, &where)) {
			note_moved(site, &arguments);
			note_lowered(reader, site, lowered);
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
	site->refused = insn.refused;
	disasm_insn__text(&insn, site->instruction, sizeof(site->instruction));
	if (!insn.emulated)
		memcpy(site->reason, reason, sizeof(site->reason));
}

/* Finds where the functions of an allocator return, so that the result can be read there. */

/* Symbols that only C libraries and well-known allocators define. A program with a malloc of its
 * own defines none of them, except __libc_start_main if it is static. */
static int find_known(const struct elf_symbol *symbol, void *arg)
{
	static const char *const names[] = { "mallctl",
					     "je_mallctl",
					     "_rjem_mallctl",
					     "mi_version",
					     "tc_version",
					     "__libc_malloc_impl",
					     "scalable_allocation_mode",
					     "mcheck_check_all",
					     "GC_gcollect" };
	struct allocator_reader *reader = arg;
	__u64 malloc_vaddr = reader->choices[AP_MALLOC].vaddr;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(symbol->name, names[i]))
			return 1;
	if (!strcmp(symbol->name, "__libc_start_main"))
		return !elf_file__is_program(reader->elf);
	return symbol->value == malloc_vaddr &&
	       (!strcmp(symbol->name, "__libc_malloc") || !strcmp(symbol->name, "default_malloc"));
}

static bool is_known(struct allocator_reader *reader)
{
	return elf_file__for_each_symbol(reader->elf, find_known, reader) > 0 ||
	       (reader->allocator->is_described &&
		elf_file__for_each_further_symbol(reader->elf, find_known, reader) > 0);
}

/* Selects the sites whose return instructions are probed. In a well-known allocator these are the
 * sites that exceptions may leave, and the functions that these tail-call; in other allocators all
 * sites that allocate. */
static void choose_ends(struct allocator_reader *reader, bool known,
			bool at_instructions[MAX_SITES])
{
	const struct allocator *allocator = reader->allocator;
	bool more = true;

	for (size_t i = 0; i < allocator->n_sites; i++)
		at_instructions[i] = !site__frees(&allocator->sites[i]) &&
				     (!known || allocator->sites[i].throws);
	while (more) {
		more = false;
		for (size_t i = 0; i < reader->n_edges; i++) {
			const struct edge *edge = &reader->edges[i];

			if (!at_instructions[edge->from] || at_instructions[edge->to])
				continue;
			at_instructions[edge->to] = more = true;
		}
	}
}

static int take_ends(struct allocator_reader *reader, const bool at_instructions[MAX_SITES],
		     __u64 **out, size_t *n)
{
	struct addresses offsets = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < reader->n_ends; i++) {
		__u64 offset;

		if (!at_instructions[reader->ends[i].site])
			continue;
		err = elf_file__vaddr_to_offset(reader->elf, reader->ends[i].vaddr, &offset)
			      ? -ENOEXEC
			      : addresses__add(&offsets, offset);
	}
	addresses__sort(&offsets);
	if (!err && offsets.n > MAX_ENDS)
		err = -E2BIG;
	if (err) {
		free(offsets.at);
		return err;
	}
	*out = offsets.at;
	*n = offsets.n;
	return 0;
}

static bool has_end(const struct allocator_reader *reader, size_t site)
{
	for (size_t i = 0; i < reader->n_ends; i++)
		if (reader->ends[i].site == site)
			return true;
	return false;
}

/* Returns how the returns of a site are observed. If there is no memory, operator new of a
 * well-known allocator may be left by an exception: such a call counts as unfinished. */
static enum allocator_returns returns_of(const struct allocator_reader *reader, size_t i,
					 bool known, bool at_instructions)
{
	const struct site *site = &reader->allocator->sites[i];

	if (known && !site->throws)
		return RETURNS_PROBED;
	if (!at_instructions || (!known && reader->leaves_unseen[i]))
		return RETURNS_UNKNOWN;
	return has_end(reader, i) || site->must_jump ? RETURNS_AT_INSTRUCTIONS : RETURNS_UNKNOWN;
}

static void spoil(struct allocator *allocator)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		allocator->sites[i].returns = RETURNS_UNKNOWN;
	allocator->n_return_offsets = 0;
}

int reader__find_ends(struct allocator_reader *reader)
{
	struct allocator *allocator = reader->allocator;
	bool at_instructions[MAX_SITES], known = is_known(reader), all = true, any = false;
	int err;

	choose_ends(reader, known, at_instructions);
	err = take_ends(reader, at_instructions, &allocator->return_offsets,
			&allocator->n_return_offsets);
	if (err && err != -E2BIG)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];

		site->returns = returns_of(reader, i, known, at_instructions[i] && !err);
		if (site__frees(site) || site->is_own)
			continue;
		all &= site->returns != RETURNS_UNKNOWN;
		any |= has_end(reader, i);
	}
	if (known || (all && any))
		return 0;
	/* If the returns of one function are unknown, all blocks of the allocator are unreliable. */
	spoil(allocator);
	return 0;
}

/* Returns whether the site may tail-call a C library function in another file. */
static bool leaves_to_malloc(const struct site *site)
{
	return site->tail_calls & ((1ULL << AP_C_FUNCTIONS) - 1);
}

/* Finds the returns as in an allocator that is not well-known, unless the definition allows return
 * probes. */
int reader__find_definition_ends(struct allocator_reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	const struct definition *definition = allocator->definition;
	bool of_blocks[MAX_SITES] = { 0 }, all[MAX_SITES] = { 0 };
	bool is_outermost = definition->nesting == AP_NESTING_OUTERMOST, any_unknown = false;
	int err;

	if (definition__only_counts(definition)) {
		spoil(allocator);
		return 0;
	}
	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];
		bool is_seen = !reader->leaves_unseen[i],
		     ends = has_end(reader, i) || site->must_jump;

		site->returns = RETURNS_UNKNOWN;
		if (definition->returns_probed)
			site->returns = RETURNS_PROBED;
		else if (is_seen && ends && !leaves_to_malloc(site))
			site->returns = RETURNS_AT_INSTRUCTIONS;
		/* The BPF programs know that a malloc which was tail-called returns in place of
		 * its caller. */
		if (is_outermost && !definition->returns_probed &&
		    !(is_seen && (ends || leaves_to_malloc(site))))
			return error__set(
				error, -ENOTSUP,
				"the code of %s does not show where it returns, so the calls beneath "
				"it cannot be recognised: define it with nesting = beside, or with "
				"returns = probes if nothing unwinds through its functions",
				site->interface->name);
		any_unknown |= site->returns == RETURNS_UNKNOWN && !site__frees(site);
		of_blocks[i] = !definition->returns_probed && !site__frees(site);
		all[i] = !definition->returns_probed && is_outermost;
	}
	err = take_ends(reader, of_blocks, &allocator->return_offsets,
			&allocator->n_return_offsets);
	if (!err)
		err = take_ends(reader, all, &allocator->nest_offsets, &allocator->n_nest_offsets);
	if (err == -E2BIG && is_outermost)
		return error__set(error, -ENOTSUP,
				  "its functions have more than %d return instructions: define it "
				  "with nesting = beside, or with returns = probes if nothing "
				  "unwinds through its functions",
				  MAX_ENDS);
	if (err && err != -E2BIG)
		return err;
	if (err || any_unknown)
		spoil(allocator);
	return 0;
}
