// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the functions that have an address in DWARF, with those that were inlined there. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "arena.h"
#include "dwarf_internal.h"

/* Limits of nested scopes, and of nested blocks and inlined functions. */
#define MAX_SCOPES 64
#define MAX_BLOCKS 256

struct function_search {
	struct query *query;
	size_t n;
	const struct code_ranges *code;
	struct dwarf_budget *budget;
	bool bodies;
};

static void take_function(const struct function_search *search, const Dwarf_Die *die, __u64 start,
			  __u64 end)
{
	for (size_t i = query__first(search->query, search->n, start);
	     i < search->n && search->query[i].place->vaddr < end && search->budget->dies; i++) {
		struct query *query = &search->query[i];

		search->budget->dies--;
		if (query->has_function && query->function_bytes <= end - start)
			continue;
		query->has_function = true;
		query->function = *die;
		query->function_bytes = end - start;
	}
}

static void try_function(const struct function_search *search, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while (search->budget->dies && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		search->budget->dies--;
		if (end > start && code_ranges__limit(search->code, start))
			take_function(search, die, start, end);
	}
}

static void search_scope(const struct function_search *search, Dwarf_Die *scope, int depth)
{
	Dwarf_Die die;

	if (depth == MAX_SCOPES || !dwarf_die__child(scope, &die, search->budget))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			try_function(search, &die);
			if (search->bodies)
				search_scope(search, &die, depth + 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
			if (search->bodies)
				search_scope(search, &die, depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
		case DW_TAG_interface_type:
			search_scope(search, &die, depth + 1);
			break;
		}
	} while (dwarf_die__next(&die, search->budget));
}

void dwarf_functions__find(Dwarf_Die *unit, struct query *query, size_t n,
			   const struct code_ranges *code, struct dwarf_budget *budget, bool bodies)
{
	const struct function_search search = { query, n, code, budget, bodies };

	search_scope(&search, unit, 0);
}

struct inline_search {
	struct arena *arena;
	struct dwarf_budget *budget;
};

/* Adds @die as an inlining level of the query, unless a neighbouring query already added it. */
static int add_level(const struct inline_search *search, struct query *query, const Dwarf_Die *die,
		     __u32 level)
{
	struct inlined_level *added;

	if (query->n_levels != level)
		return 0;
	added = arena__alloc(search->arena, sizeof(*added));
	if (!added)
		return -ENOMEM;
	added->die = *die;
	added->outer = query->innermost;
	query->innermost = added;
	query->n_levels++;
	return 0;
}

static int search_block(const struct inline_search *search, Dwarf_Die *block, struct query *query,
			size_t n, __u32 level, int depth);

/* Descends into @die if its ranges contain any of the queries. */
static int try_block(const struct inline_search *search, Dwarf_Die *die, struct query *query,
		     size_t n, __u32 level, int depth)
{
	bool is_inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	size_t low = n, high = 0;
	Dwarf_Addr base, start, end;
	bool has_ranges = false;
	ptrdiff_t at = 0;

	while (search->budget->dies && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		size_t i = query__first(query, n, start);

		search->budget->dies--;
		has_ranges = true;
		for (; i < n && query[i].place->vaddr < end && search->budget->dies; i++) {
			search->budget->dies--;
			low = i < low ? i : low;
			high = i + 1 > high ? i + 1 : high;
			if (is_inlined && add_level(search, &query[i], die, level))
				return -ENOMEM;
		}
	}
	/* A block without ranges may contain anything. */
	if (!has_ranges && !is_inlined) {
		low = 0;
		high = n;
	}
	if (low >= high)
		return 0;
	return search_block(search, die, query + low, high - low, level + is_inlined, depth + 1);
}

static int search_block(const struct inline_search *search, Dwarf_Die *block, struct query *query,
			size_t n, __u32 level, int depth)
{
	Dwarf_Die die;
	int err = 0;

	if (depth == MAX_BLOCKS || !dwarf_die__child(block, &die, search->budget))
		return 0;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
		case DW_TAG_with_stmt:
			err = try_block(search, &die, query, n, level, depth);
			break;
		}
	} while (!err && dwarf_die__next(&die, search->budget));
	return err;
}

int dwarf_functions__find_inlined(Dwarf_Die *function, struct query *query, size_t n,
				  struct arena *arena, struct dwarf_budget *budget)
{
	const struct inline_search search = { arena, budget };

	return search_block(&search, function, query, n, 0, 0);
}
