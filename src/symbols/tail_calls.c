// SPDX-License-Identifier: GPL-3.0-or-later
#include "tail_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "code_map.h"
#include "elf_file.h"
#include "hash_table.h"
#include "profile.h"
#include "symbols.h"

/* Limits: consecutive tail calls, tail calls of one function, and functions to search. */
#define MAX_CHAIN  8
#define MAX_EXITS  16
#define MAX_LOOKED 64

/* A function of a module, or one of the allocator, of which only the name is known. */
struct function {
	__u32 module;
	__u64 entry;
	const char *name;
};

/* A tail call of a function. */
struct call_site {
	__u32 module;
	__u64 offset; /* after the jump */
};

/* The frames between two adjacent ones. */
struct pair {
	__u32 inner; /* frame id, or 0 */
	__u32 outer;
	enum ap_function function; /* the allocator's function, if @inner is 0 */
	__u32 n;
	__u32 frames[MAX_CHAIN]; /* ids of the tail calls' frames, innermost first */
};

struct finder {
	struct profile *profile;
	const struct symbols *symbols;
	struct code_map **maps; /* by module id - 1 */
	bool *are_tried;
	struct pair *pairs;
	size_t n_pairs, pairs_room;
	struct hash_table index;
	__u64 seed;
};

/* State of a search for all paths of tail calls from one function to another. */
struct search {
	struct finder *finder;
	struct function to;
	struct call_site chain[MAX_CHAIN]; /* the current path, outermost first */
	struct function on_chain[MAX_CHAIN];
	__u32 depth, n_looked;
	struct call_site found[MAX_CHAIN];
	/* Of the paths found: the length of the first, and how many sites all have in common at
	 * each end. */
	__u32 length, common_outer, common_inner;
	__u32 n_found;
	bool is_uncertain;
};

/* NULL if the module's file is not available. */
static int get_map(struct finder *finder, __u32 module, struct code_map **map)
{
	struct elf_file *elf;
	int err;

	*map = NULL;
	if (!module)
		return 0;
	if (!finder->are_tried[module - 1]) {
		finder->are_tried[module - 1] = true;
		err = symbols__open_code(finder->symbols, module, &elf);
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

/* The function that @name refers to, if exactly one of the profile's modules exports it. */
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

/* Whether @function, the target of a call or jump, is the function of the next frame or the
 * allocator's. */
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

/* As gdb: of several paths, the sites that all have in common at both ends are certain. */
static void note_way(struct search *search)
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

static bool is_on_chain(const struct search *search, const struct function *function)
{
	for (__u32 i = 0; i < search->depth; i++)
		if (is_same(&search->on_chain[i], function))
			return true;
	return false;
}

static int look_into(struct search *search, const struct function *function)
{
	struct finder *finder = search->finder;
	struct code_exit exits[MAX_EXITS];
	struct code_map *map;
	int n, err;

	err = get_map(finder, function->module, &map);
	if (err)
		return err;
	if (!map || search->depth == MAX_CHAIN || ++search->n_looked > MAX_LOOKED) {
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
			(struct call_site){ function->module, exits[i].site };
		if (is_reached(finder, &next, &search->to))
			note_way(search);
		else if (!is_on_chain(search, &next))
			err = look_into(search, &next);
		search->depth--;
	}
	return err;
}

static int add_site(struct finder *finder, const struct call_site *site, struct pair *pair)
{
	int err = profile__add_tail_call(finder->profile, site->module, site->offset,
					 &pair->frames[pair->n]);

	if (!err)
		pair->n++;
	return err == -EEXIST ? 0 : err;
}

static int search_ways(struct finder *finder, const struct function *from,
		       const struct function *to, struct pair *pair)
{
	struct search search = { .finder = finder, .to = *to };
	int err = look_into(&search, from);

	if (err || search.is_uncertain || !search.n_found)
		return err;
	/* Innermost first; if all paths are equal, both ends have the whole path. */
	if (search.common_inner == search.length)
		search.common_outer = 0;
	for (__u32 i = 0; i < search.common_inner && !err; i++)
		err = add_site(finder, &search.found[search.length - 1 - i], pair);
	for (__u32 i = search.common_outer; i > 0 && !err; i--)
		err = add_site(finder, &search.found[i - 1], pair);
	return err;
}

static __u64 place_of(const struct profile_frame *frame)
{
	return frame->offset - !frame->interrupted;
}

static int find_between(struct finder *finder, struct pair *pair)
{
	const struct profile *profile = finder->profile;
	const struct profile_frame *outer = &profile->frames[pair->outer - 1], *inner = NULL;
	struct code_map *outer_map, *inner_map = NULL;
	struct function from, to = { .name = profile__function_name(pair->function) };
	struct code_target target;
	int err;

	/* The name of a defined source's function is not known. */
	if (outer->interrupted || (!pair->inner && pair->function >= AP_DEFINED))
		return 0;
	err = get_map(finder, outer->module, &outer_map);
	if (err || !outer_map || !code_map__call(outer_map, outer->offset, &target))
		return err;
	if (pair->inner) {
		inner = &profile->frames[pair->inner - 1];
		err = get_map(finder, inner->module, &inner_map);
		if (err || !inner_map || !code_map__function(inner_map, place_of(inner), &to.entry))
			return err;
		to.module = inner->module;
	}
	err = resolve(finder, outer->module, &target, &from);
	if (err || is_reached(finder, &from, &to) || !from.module)
		return err;
	/* The next frame must certainly belong to @to, not to the called function. */
	if (pair->inner && !code_map__has(inner_map, to.entry, place_of(inner)))
		return 0;
	return search_ways(finder, &from, &to, pair);
}

static bool match_pair(const void *owner, __u32 id, const void *key)
{
	const struct pair *pair = &((const struct finder *)owner)->pairs[id - 1], *wanted = key;

	return pair->inner == wanted->inner && pair->outer == wanted->outer &&
	       pair->function == wanted->function;
}

static int get_between(struct finder *finder, __u32 inner, __u32 outer, enum ap_function function,
		       const struct pair **out)
{
	struct pair wanted = { .inner = inner, .outer = outer, .function = function };
	__u64 hash = hash_mix(hash_mix(hash_mix(finder->seed, inner), outer), function);
	__u32 id = hash_table__find(&finder->index, hash, match_pair, finder, &wanted);
	int err;

	if (!id) {
		err = find_between(finder, &wanted);
		if (!err)
			err = array__reserve(&finder->pairs, &finder->pairs_room,
					     finder->n_pairs + 1, sizeof(*finder->pairs));
		if (!err)
			err = hash_table__insert(&finder->index, hash, finder->n_pairs + 1);
		if (err)
			return err;
		finder->pairs[finder->n_pairs++] = wanted;
		id = finder->n_pairs;
	}
	*out = &finder->pairs[id - 1];
	return 0;
}

/* Inserts frames before the first one, if all functions called from this stack agree on them. */
static int begin_stack(struct finder *finder, const struct profile_stack *stack, __u64 functions,
		       __u32 *frames, size_t *n)
{
	const struct pair *pair;
	bool is_first = true;

	for (int function = 0; function < AP_FUNCTIONS; function++) {
		int err;

		if (!(functions & 1ULL << function))
			continue;
		err = get_between(finder, 0, stack->frames[0], function, &pair);
		if (err)
			return err;
		if (!is_first &&
		    (*n != pair->n || memcmp(frames, pair->frames, *n * sizeof(*frames)) != 0)) {
			*n = 0;
			return 0;
		}
		*n = pair->n;
		memcpy(frames, pair->frames, *n * sizeof(*frames));
		is_first = false;
	}
	return 0;
}

static int insert_tail_calls(struct finder *finder, const struct profile_stack *stack,
			     __u64 functions)
{
	_cleanup_(free_ptr) __u32 *frames = NULL;
	const struct profile *profile = finder->profile;
	size_t n = 0;
	int err = 0;

	if (!stack->n_frames)
		return 0;
	frames = calloc((size_t)stack->n_frames * (MAX_CHAIN + 1), sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	if (!profile->frames[stack->frames[0] - 1].tail_call)
		err = begin_stack(finder, stack, functions, frames, &n);
	for (__u32 i = 0; i < stack->n_frames && !err; i++) {
		__u32 frame = stack->frames[i], next;
		const struct pair *pair;

		frames[n++] = frame;
		next = i + 1 < stack->n_frames ? stack->frames[i + 1] : 0;
		if (!next || profile->frames[frame - 1].tail_call ||
		    profile->frames[next - 1].tail_call)
			continue;
		err = get_between(finder, frame, next, 0, &pair);
		for (__u32 j = 0; !err && j < pair->n; j++)
			frames[n++] = pair->frames[j];
	}
	if (err || n == stack->n_frames || n > AP_MAX_DEPTH)
		return err;
	return profile__set_stack_frames(finder->profile, stack->id, frames, n);
}

static int insert_all_tail_calls(struct finder *finder)
{
	const struct profile *profile = finder->profile;
	_cleanup_(free_ptr) __u64 *functions = calloc(profile->n_stacks + 1, sizeof(*functions));
	int err = 0;

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		functions[profile->counts[i].stack - 1] |= 1ULL << profile->counts[i].function;
	for (size_t i = 0; i < profile->n_stacks && !err; i++)
		err = insert_tail_calls(finder, &profile->stacks[i], functions[i]);
	return err;
}

int profile__add_tail_calls(struct profile *profile, const struct symbols *symbols)
{
	struct finder finder = { .profile = profile, .symbols = symbols, .seed = hash_seed() };
	int err = -ENOMEM;

	finder.maps = calloc(profile->n_modules + 1, sizeof(*finder.maps));
	finder.are_tried = calloc(profile->n_modules + 1, sizeof(*finder.are_tried));
	if (finder.maps && finder.are_tried)
		err = insert_all_tail_calls(&finder);
	for (size_t i = 0; finder.maps && i < profile->n_modules; i++)
		code_map__free(finder.maps[i]);
	hash_table__release(&finder.index);
	free(finder.pairs);
	free(finder.maps);
	free(finder.are_tried);
	return err;
}
