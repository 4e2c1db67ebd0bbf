// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds where the functions of an allocator return, so that the result can be read there. */
#include "allocator_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "sources.h"

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

/* Selects the sites whose return instructions are probed: in a well-known allocator those that
 * exceptions may leave, and the functions that these tail-call; in others
 * all that allocate. */
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

/* How to observe the returns of a site. operator new of a well-known allocator may leave by other
 * ways if there is no memory: such a call counts as unfinished. */
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
	/* One function with unknown returns makes all blocks unreliable. */
	spoil(allocator);
	return 0;
}

/* Whether it may tail-call a C library function, in another file. */
static bool leaves_to_malloc(const struct site *site)
{
	return site->tail_calls & ((1ULL << AP_C_FUNCTIONS) - 1);
}

/* Like an allocator that is not well-known, unless the definition allows return probes. */
int reader__find_source_ends(struct allocator_reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	const struct source *source = allocator->source;
	bool of_blocks[MAX_SITES] = { 0 }, all[MAX_SITES] = { 0 };
	bool is_outermost = source->nesting == AP_NESTING_OUTERMOST, any_unknown = false;
	int err;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];
		bool is_seen = !reader->leaves_unseen[i],
		     ends = has_end(reader, i) || site->must_jump;

		site->returns = RETURNS_UNKNOWN;
		if (source->returns_probed)
			site->returns = RETURNS_PROBED;
		else if (is_seen && ends && !leaves_to_malloc(site))
			site->returns = RETURNS_AT_INSTRUCTIONS;
		/* The programs know that a tail-called malloc returns in the place of its
		 * caller. */
		if (is_outermost && !source->returns_probed &&
		    !(is_seen && (ends || leaves_to_malloc(site))))
			return error__set(
				error, -ENOTSUP,
				"the code of %s does not show where it returns, so the calls beneath "
				"it cannot be recognised: define it with nesting = beside, or with "
				"returns = probes if nothing unwinds through its functions",
				site->interface->name);
		any_unknown |= site->returns == RETURNS_UNKNOWN && !site__frees(site);
		of_blocks[i] = !source->returns_probed && !site__frees(site);
		all[i] = !source->returns_probed && is_outermost;
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
