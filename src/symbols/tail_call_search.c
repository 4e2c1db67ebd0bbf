// SPDX-License-Identifier: GPL-3.0-or-later
#include "tail_call_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code_map.h"
#include "profile.h"

/* Limits of the tail calls of one function, and of the functions to search. */
#define MAX_EXITS  16
#define MAX_LOOKED 64

/* A function of a module, or a function of the allocator, of which only the name is known. */
struct function {
	__u32 module;
	__u64 entry;
	const char *name;
};

struct finder {
	struct tail_call_files files;
	const struct profile *profile;
	struct code_map **maps; /* by module id - 1 */
	bool *are_tried;
	struct tail_call_pairs *pairs;
};

/* State of a search for all paths of tail calls from one function to another. */
struct chain_search {
	struct finder *finder;
	struct function to;
	struct tail_call chain[TAIL_CALLS_MAX]; /* the current path, outermost first */
	struct function on_chain[TAIL_CALLS_MAX];
	__u32 depth, n_looked;
	struct tail_call found[TAIL_CALLS_MAX];
	/* The length of the first path found, and how many sites all paths have in common at each end. */
	__u32 length, common_outer, common_inner;
	__u32 n_found;
	bool is_uncertain;
};

/* Stores the module's map; NULL if the module's file is not available. */
static int get_map(struct finder *finder, __u32 module, struct code_map **map)
{
	struct elf_file *elf;
	int err;

	*map = NULL;
	if (!module)
		return 0;
	if (!finder->are_tried[module - 1]) {
		finder->are_tried[module - 1] = true;
		err = finder->files.open(finder->files.context, module, &elf);
		if (!err)
			err = code_map__new(elf, &finder->maps[module - 1]);
		if (err == -ENOMEM)
			return err;
	}
	*map = finder->maps[module - 1];
	return 0;
}

static bool is_same(const struct function *a, const struct function *b)
{
	return a->module == b->module && a->entry == b->entry && a->module;
}

/* Stores the function to which @name refers, if exactly one of the profile's modules exports it. */
static int resolve_name(struct finder *finder, const char *name, struct function *out)
{
	*out = (struct function){ .name = name };
	for (__u32 module = 1; module <= finder->profile->n_modules; module++) {
		struct code_map *map;
		__u64 entry;
		int err = get_map(finder, module, &map);

		if (err)
			return err;
		if (!map || !code_map__exported(map, name, &entry))
			continue;
		if (out->module) {
			*out = (struct function){ .name = name };
			return 0;
		}
		out->module = module;
		out->entry = entry;
	}
	return 0;
}

static int resolve(struct finder *finder, __u32 module, const struct code_target *target,
		   struct function *out)
{
	if (!target->entry)
		return resolve_name(finder, target->name, out);
	*out = (struct function){ .module = module, .entry = target->entry };
	return 0;
}

/* Returns whether @function, the target of a call or jump, is the function of the next frame or
 * the allocator's. */
static bool is_reached(struct finder *finder, const struct function *function,
		       const struct function *to)
{
	const struct code_map *map;
	__u64 entry;

	if (to->module) {
		if (is_same(function, to))
			return true;
		/* If several modules export the name, any of them may have been chosen. */
		map = finder->maps[to->module - 1];
		return !function->module && function->name && map &&
		       code_map__exported(map, function->name, &entry) && entry == to->entry;
	}
	if (function->name && !strcmp(function->name, to->name))
		return true;
	return function->module && finder->maps[function->module - 1] &&
	       code_map__is_named(finder->maps[function->module - 1], function->entry, to->name);
}

/* Notes a path. If there are several paths, those sites are certain that all have in common at
 * either end, as in gdb. */
static void note_way(struct chain_search *search)
{
	__u32 n = search->depth, same;

	if (!search->n_found++) {
		memcpy(search->found, search->chain, n * sizeof(search->chain[0]));
		search->length = search->common_outer = search->common_inner = n;
		return;
	}
	for (same = 0; same < n && same < search->common_outer; same++)
		if (memcmp(&search->found[same], &search->chain[same], sizeof(search->found[0])) !=
		    0)
			break;
	search->common_outer = same;
	for (same = 0; same < n && same < search->common_inner; same++)
		if (memcmp(&search->found[search->length - 1 - same], &search->chain[n - 1 - same],
			   sizeof(search->found[0])) != 0)
			break;
	search->common_inner = same;
}

static bool is_on_chain(const struct chain_search *search, const struct function *function)
{
	for (__u32 i = 0; i < search->depth; i++)
		if (is_same(&search->on_chain[i], function))
			return true;
	return false;
}

static int look_into(struct chain_search *search, const struct function *function)
{
	struct finder *finder = search->finder;
	struct code_exit exits[MAX_EXITS];
	struct code_map *map;
	int n, err;

	err = get_map(finder, function->module, &map);
	if (err)
		return err;
	if (!map || search->depth == TAIL_CALLS_MAX || ++search->n_looked > MAX_LOOKED) {
		search->is_uncertain = true;
		return 0;
	}
	n = code_map__exits(map, function->entry, exits, MAX_EXITS);
	if (n == -ENOMEM)
		return n;
	if (n < 0)
		search->is_uncertain = true;
	search->on_chain[search->depth] = *function;
	for (int i = 0; i < n && !search->is_uncertain && !err; i++) {
		struct function next;

		err = resolve(finder, function->module, &exits[i].target, &next);
		if (err)
			return err;
		search->chain[search->depth++] =
			(struct tail_call){ .module = function->module, .offset = exits[i].site };
		if (is_reached(finder, &next, &search->to))
			note_way(search);
		else if (!is_on_chain(search, &next))
			err = look_into(search, &next);
		search->depth--;
	}
	return err;
}

static int search_ways(struct finder *finder, const struct function *from,
		       const struct function *to, struct tail_call_pair *pair)
{
	struct chain_search search = { .finder = finder, .to = *to };
	int err = look_into(&search, from);

	if (err || search.is_uncertain || !search.n_found)
		return err;
	/* Stores the calls, innermost first. If all paths are equal, both ends have the whole
	 * path. */
	if (search.common_inner == search.length)
		search.common_outer = 0;
	for (__u32 i = 0; i < search.common_inner; i++)
		pair->calls[pair->n++] = search.found[search.length - 1 - i];
	for (__u32 i = search.common_outer; i > 0; i--)
		pair->calls[pair->n++] = search.found[i - 1];
	return 0;
}

static __u64 call_address(const struct profile_frame *frame)
{
	return frame->offset - !frame->place;
}

static int find_between(struct finder *finder, struct tail_call_pair *pair)
{
	const struct profile *profile = finder->profile;
	const struct profile_frame *outer = &profile->frames[pair->outer - 1], *inner = NULL;
	struct code_map *outer_map, *inner_map = NULL;
	struct function from, to = { .name = profile__function_name(pair->function) };
	struct code_target target;
	int err;

	/* The name of a defined allocator's function is not known. */
	if (outer->place ||
	    (pair->inner && profile->frames[pair->inner - 1].place == PROFILE_PLACE_AWAITING) ||
	    (!pair->inner && pair->function >= AP_DEFINED))
		return 0;
	err = get_map(finder, outer->module, &outer_map);
	if (err || !outer_map || !code_map__call(outer_map, outer->offset, &target))
		return err;
	if (pair->inner) {
		inner = &profile->frames[pair->inner - 1];
		err = get_map(finder, inner->module, &inner_map);
		if (err || !inner_map ||
		    !code_map__function(inner_map, call_address(inner), &to.entry))
			return err;
		to.module = inner->module;
	}
	err = resolve(finder, outer->module, &target, &from);
	if (err || is_reached(finder, &from, &to) || !from.module)
		return err;
	/* The next frame must certainly belong to @to, not to the called function. */
	if (pair->inner && !code_map__has(inner_map, to.entry, call_address(inner)))
		return 0;
	return search_ways(finder, &from, &to, pair);
}

static int look_between(struct finder *finder, __u32 inner, __u32 outer, enum ap_function function)
{
	struct tail_call_pair pair = { .inner = inner, .outer = outer, .function = function };
	int err;

	if (tail_call_pairs__find(finder->pairs, &pair))
		return 0;
	err = find_between(finder, &pair);
	return err ? err : tail_call_pairs__add(finder->pairs, &pair);
}

/* Returns how many of the outermost frames two stacks have in common. */
static __u32 n_common(const struct profile_stack *a, const struct profile_stack *b)
{
	__u32 n = 0;

	while (n < a->n_frames && n < b->n_frames &&
	       a->frames[a->n_frames - 1 - n] == b->frames[b->n_frames - 1 - n])
		n++;
	return n;
}

/* Looks into a stack. @before is a stack that has been looked into, or NULL; many stacks have most
 * of their frames in common with the one before. */
static int look_into_stack(struct finder *finder, const struct profile_stack *stack,
			   const struct profile_stack *before, __u64 functions)
{
	__u32 n = stack->n_frames - (before ? n_common(stack, before) : 0);
	int err = 0;

	for (int function = 0; function < AP_FUNCTIONS && !err; function++)
		if (functions & 1ULL << function && stack__may_begin(finder->profile, stack))
			err = look_between(finder, 0, stack->frames[0], function);
	for (__u32 i = 0; i < n && !err; i++)
		if (stack__may_have_between(finder->profile, stack, i))
			err = look_between(finder, stack->frames[i], stack->frames[i + 1], 0);
	return err;
}

int tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
		       struct tail_call_pairs *pairs)
{
	struct finder finder = { .profile = profile, .files = *files, .pairs = pairs };
	__u64 *functions = NULL;
	int err = -ENOMEM;

	finder.maps = calloc(profile->n_modules + 1, sizeof(*finder.maps));
	finder.are_tried = calloc(profile->n_modules + 1, sizeof(*finder.are_tried));
	if (finder.maps && finder.are_tried)
		err = stacks__functions(profile, &functions);
	for (size_t i = 0; i < profile->n_stacks && !err; i++)
		err = look_into_stack(&finder, &profile->stacks[i],
				      i ? &profile->stacks[i - 1] : NULL, functions[i]);
	for (size_t i = 0; finder.maps && i < profile->n_modules; i++)
		code_map__free(finder.maps[i]);
	free(functions);
	free(finder.maps);
	free(finder.are_tried);
	return err;
}
