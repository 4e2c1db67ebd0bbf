// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds exported functions of an allocator that hand out memory and that no definition names. */
#include "allocator_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "sources.h"

/* Maximum number of callees searched for a call of a site. */
#define MAX_CALLED 64
/* Depth of the search for malloc in functions that copy; deeper calls are made for other
 * purposes. */
#define COPY_DEPTH 2

static enum flow_step visit_called(const struct disasm_insn *insn, void *arg)
{
	struct allocator_reader *reader = arg;
	struct way way;
	__u64 target;

	if (insn->class == DISASM_OTHER || insn->class == DISASM_RET)
		return FLOW_PASS;
	way = reader__way_of(reader, insn);
	if (way.names) {
		reader->calls_site = true;
		return FLOW_STOP;
	}
	target = way.target;
	if (!target && insn->class == DISASM_CALL && insn->has_target)
		target = insn->target;
	if (target && reader->continuations.n < MAX_CALLED)
		reader__note_continuation(reader, target);
	return way.target ? FLOW_PASS : FLOW_FOLLOW;
}

/* Whether the function calls a site, or malloc of any file, within @depth calls, so that its
 * allocations are counted there. */
static bool calls_site(struct allocator_reader *reader, __u64 vaddr, size_t depth)
{
	size_t level_end = 1;

	reader->calls_site = false;
	reader->current = 0;
	reader->continuations.n = 0;
	if (addresses__add(&reader->continuations, vaddr))
		return true;
	for (size_t i = 0; i < reader->continuations.n && !reader->calls_site; i++) {
		if (i == level_end) {
			if (!--depth)
				break;
			level_end = reader->continuations.n;
		}
		if (reader__text_at(reader, reader->continuations.at[i]) &&
		    reader__walk_flow(reader, reader->continuations.at[i], visit_called))
			return true;
	}
	return reader->calls_site;
}

static int add_unknown(const struct elf_symbol *symbol, void *arg)
{
	struct allocator_reader *reader = arg;
	struct allocator *allocator = reader->allocator;
	struct unknown_function unknown = { .vaddr = symbol->value };
	enum interface_family family;

	if (symbol->type != STT_FUNC || !symbol->is_default ||
	    strlen(symbol->name) > MAX_SYMBOL_NAME ||
	    allocator->n_unknown == ALLOCATOR_MAX_UNKNOWN ||
	    c_function_of(symbol->name) != AP_C_FUNCTIONS ||
	    interface__find(symbol->name, &family) ||
	    allocator__site_at(allocator, symbol->value) || !interface__looks_alike(symbol->name) ||
	    calls_site(reader, symbol->value,
		       interface__copies(symbol->name) ? COPY_DEPTH : MAX_CALLED) ||
	    elf_file__vaddr_to_offset(reader->elf, symbol->value, &unknown.offset))
		return 0;
	for (size_t i = 0; i < allocator->n_unknown; i++)
		if (allocator->unknown[i].vaddr == unknown.vaddr)
			return 0;
	unknown.name = strdup(symbol->name);
	if (!unknown.name)
		return -ENOMEM;
	allocator->unknown[allocator->n_unknown++] = unknown;
	return 0;
}

/* Adds a function of the table whose calls may end unknown blocks. */
static int add_end(struct allocator_reader *reader, const struct site_candidate *candidate)
{
	struct allocator *allocator = reader->allocator;
	struct unknown_function *end = &allocator->unknown[allocator->n_unknown];

	*end = (struct unknown_function){
		.vaddr = candidate->vaddr,
		.ends = true,
		.is_by_name = candidate->interface->kind == INTERFACE_IGNORED,
	};
	if (allocator->n_unknown == ALLOCATOR_MAX_UNKNOWN ||
	    elf_file__vaddr_to_offset(reader->elf, end->vaddr, &end->offset))
		return 0;
	end->name = strdup(candidate->interface->name);
	if (!end->name)
		return -ENOMEM;
	allocator->n_unknown++;
	return 0;
}

static int find_ends(struct allocator_reader *reader)
{
	int err = 0;

	for (size_t i = 0; !err && i < reader->n_candidates; i++)
		if (reader->candidates[i].interface->ends)
			err = add_end(reader, &reader->candidates[i]);
	return err;
}

static int compare_unknown(const void *a, const void *b)
{
	return strcmp(((const struct unknown_function *)a)->name,
		      ((const struct unknown_function *)b)->name);
}

/*
 * A file that is an allocator exports functions for others to call, a program those that libraries refer to. A C library
 * also exports many other functions, and what they allocate comes from its malloc; where nobody else has names of its
 * functions, as in a static program, they mean nothing.
 */
int reader__find_unknown(struct allocator_reader *reader)
{
	struct allocator *allocator = reader->allocator;
	bool leaves_unseen = reader->leaves_unseen[0];
	int err;

	allocator->unknown = calloc(ALLOCATOR_MAX_UNKNOWN + 1, sizeof(*allocator->unknown));
	if (!allocator->unknown)
		return -ENOMEM;
	allocator->is_collected = reader__has_family(reader, INTERFACE_GC);
	err = find_ends(reader);
	if (err || elf_file__is_static(reader->elf) || allocator->is_wrapper ||
	    reader->is_c_library)
		return err;
	err = elf_file__for_each_symbol(reader->elf, add_unknown, reader);
	reader->leaves_unseen[0] = leaves_unseen;
	if (allocator->n_unknown)
		qsort(allocator->unknown, allocator->n_unknown, sizeof(*allocator->unknown),
		      compare_unknown);
	return err;
}

static bool matches_any(const char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++) {
		struct pattern pattern;
		bool matches;

		if (pattern__parse(&pattern, *patterns, NULL))
			continue;
		matches = pattern__match(&pattern, name);
		pattern__release(&pattern);
		if (matches)
			return true;
	}
	return false;
}

static void forget(struct allocator *allocator, const char *const *patterns,
		   const struct source *source)
{
	size_t n = 0;

	for (size_t i = 0; i < allocator->n_unknown; i++) {
		char *name = allocator->unknown[i].name;

		if (matches_any(patterns, name) || (source && source__find(source, name)))
			free(name);
		else
			allocator->unknown[n++] = allocator->unknown[i];
	}
	allocator->n_unknown = n;
}

void allocator__ignore(struct allocator *allocator, const char *const *patterns)
{
	forget(allocator, patterns, NULL);
}

void allocator__forget_defined(struct allocator *allocator, const struct source *source)
{
	forget(allocator, NULL, source);
}
