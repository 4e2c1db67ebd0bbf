// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds candidates without comparing each with each: stacks with much in common, and corresponding
 * files of two profiles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "diff_internal.h"
#include "hash_table.h"
#include "profile.h"
#include "stack_view.h"

/*
 * The key of a list of frames is the sum of f(frame) * BASE^index, so that the key without one
 * frame follows in one step. Different stacks may have the same key, since stacks are compared
 * afterwards; so the seed can be fixed, and every run compares the same stacks.
 */
#define BASE	     0x9e3779b97f4a7c15ULL
#define BASE_INVERSE 0xf1de83e19937733dULL /* BASE * BASE_INVERSE = 1 */

#define AFTER_BIT  0x80000000U
#define RADIX_BITS 11
#define RADIX	   (1U << RADIX_BITS)

struct diff_key {
	__u32 key;
	__u32 rank; /* rank, with AFTER_BIT for stacks of AFTER */
};

int diff_keys__init(struct diff_keys *keys, const struct diff *diff,
		    __u32 *const stacks[DIFF_SIDES], const size_t n[DIFF_SIDES])
{
	const struct diff_aligner *aligner = diff->aligner;
	bool *is_stable = calloc(aligner->n_canonical + 1, sizeof(*is_stable));
	__u32 longest = 0;

	*keys = (struct diff_keys){ .diff = diff, .is_stable = is_stable };
	if (!is_stable)
		return -ENOMEM;
	for (size_t i = 0; i < aligner->n_canonical; i++)
		is_stable[i] =
			aligner->is_known[DIFF_BEFORE][i] && aligner->is_known[DIFF_AFTER][i];
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (n[side] >= AFTER_BIT)
			return -ENOMEM;
		keys->stacks[side] = stacks[side];
		keys->n_stacks[side] = n[side];
		keys->ranks[side] = calloc(n[side] + 1, sizeof(__u32));
		if (!keys->ranks[side])
			return -ENOMEM;
	}
	for (size_t i = 0; i < diff->n_stacks; i++) {
		if (diff->stacks[i].n_frames > longest)
			longest = diff->stacks[i].n_frames;
	}
	keys->sums = calloc((size_t)longest + 1, sizeof(*keys->sums));
	keys->inverses = calloc((size_t)longest + 1, sizeof(*keys->inverses));
	if (!keys->sums || !keys->inverses)
		return -ENOMEM;
	keys->inverses[0] = 1;
	for (__u32 i = 0; i < longest; i++)
		keys->inverses[i + 1] = keys->inverses[i] * BASE_INVERSE;
	return 0;
}

void diff_keys__release(struct diff_keys *keys)
{
	free((void *)keys->is_stable);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(keys->ranks[side]);
	free(keys->sums);
	free(keys->inverses);
	free(keys->keys);
}

static int add_key(struct diff_keys *keys, __u64 hash, __u32 n_frames, __u32 rank)
{
	int err = array__reserve(&keys->keys, &keys->room, keys->n_keys + 1, sizeof(*keys->keys));

	if (err)
		return err;
	keys->keys[keys->n_keys++] = (struct diff_key){ hash_mix(hash, n_frames) >> 32, rank };
	return 0;
}

static __u64 hash_name(__u32 canonical)
{
	return hash_mix(hash_mix(0x2545f4914f6cdd1dULL, canonical), canonical);
}

/* Fills keys->sums: sums[i] is the key of the first i frames. Returns the number of frames. */
static __u32 sum_frames(struct diff_keys *keys, const struct diff_stack *stack)
{
	const __u32 *frames = diff_stack__frames(keys->diff, stack);
	__u64 power = 1;
	__u32 n = 0;

	for (__u32 i = 0; i < stack->n_frames; i++) {
		__u32 canonical = keys->diff->names[frames[i]].canonical;

		if (!keys->is_stable[canonical])
			continue;
		keys->sums[n + 1] = keys->sums[n] + hash_name(canonical) * power;
		power *= BASE;
		n++;
	}
	return n;
}

static int add_but_one(struct diff_keys *keys, __u32 n, __u32 rank)
{
	__u64 whole = keys->sums[n];
	int err = 0;

	for (__u32 i = 0; i < n && !err; i++)
		err = add_key(keys, keys->sums[i] + (whole - keys->sums[i + 1]) * BASE_INVERSE,
			      n - 1, rank);
	return err;
}

/* Adds a key for each combination of 1, 2, 4, 8, ... innermost and outermost frames that has at
 * least half of all. */
static int add_ends(struct diff_keys *keys, __u32 n, __u32 rank)
{
	int err = 0;

	for (__u32 inner = 1; inner < n; inner *= 2) {
		for (__u32 outer = 1; inner + outer < n && !err; outer *= 2) {
			/* This shifts the sum of the outer frames to index 0. */
			__u64 hash =
				(keys->sums[n] - keys->sums[n - outer]) * keys->inverses[n - outer];

			if ((inner + outer) * 2 >= n)
				err = add_key(keys, hash_mix(keys->sums[inner], hash),
					      inner << 16 | outer, rank);
		}
	}
	return err;
}

static int add_stack(struct diff_keys *keys, enum diff_side side, __u32 rank)
{
	__u32 n = sum_frames(keys, &keys->diff->stacks[keys->stacks[side][rank]]);
	__u32 marked = rank | (side == DIFF_AFTER ? AFTER_BIT : 0);
	int err;

	if (keys->kind == DIFF_KEYS_ENDS)
		return add_ends(keys, n, marked);
	err = add_key(keys, keys->sums[n], n, marked);
	if (!err && keys->kind == DIFF_KEYS_BUT_ONE)
		err = add_but_one(keys, n, marked);
	return err;
}

/* Sorts by key, and keeps the order of equal keys. */
static int sort_keys(struct diff_keys *keys)
{
	struct diff_key *other = calloc(keys->room, sizeof(*other)), *from = keys->keys;

	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 32; shift += RADIX_BITS) {
		size_t starts[RADIX] = { 0 }, at = 0;
		struct diff_key *to = other;

		for (size_t i = 0; i < keys->n_keys; i++)
			starts[from[i].key >> shift & (RADIX - 1)]++;
		for (size_t i = 0; i < RADIX; i++) {
			size_t n = starts[i];

			starts[i] = at;
			at += n;
		}
		for (size_t i = 0; i < keys->n_keys; i++)
			to[starts[from[i].key >> shift & (RADIX - 1)]++] = from[i];
		other = from;
		from = to;
	}
	keys->keys = from;
	free(other);
	return 0;
}

int diff_keys__fill(struct diff_keys *keys, enum diff_key_kind kind,
		    const bool *const is_paired[DIFF_SIDES])
{
	int err = 0;

	keys->kind = kind;
	keys->n_keys = 0;
	for (int side = 0; side < DIFF_SIDES; side++) {
		for (size_t rank = 0; rank < keys->n_stacks[side] && !err; rank++) {
			if (!is_paired[side][rank])
				err = add_stack(keys, side, rank);
		}
	}
	return err || !keys->n_keys ? err : sort_keys(keys);
}

int diff_keys__for_each_group(struct diff_keys *keys,
			      int (*visit)(void *context, const struct diff_key_group *group),
			      void *context)
{
	int err = 0;

	for (size_t i = 0; i < keys->n_keys && !err;) {
		struct diff_key_group group = {
			.key = keys->keys[i].key,
			.ranks = { keys->ranks[DIFF_BEFORE], keys->ranks[DIFF_AFTER] },
		};

		for (; i < keys->n_keys && keys->keys[i].key == group.key; i++) {
			__u32 marked = keys->keys[i].rank, rank = marked & ~AFTER_BIT;
			enum diff_side side = marked & AFTER_BIT ? DIFF_AFTER : DIFF_BEFORE;
			__u32 *n = &group.n[side];

			/* A recursive stack gives the same key for several of its frames. */
			if (!*n || keys->ranks[side][*n - 1] != rank)
				keys->ranks[side][(*n)++] = rank;
		}
		if (group.n[DIFF_BEFORE] && group.n[DIFF_AFTER])
			err = visit(context, &group);
	}
	return err;
}

/* How many files without a counterpart are compared with each other. */
#define MOST_COMPARED 512

struct likeness {
	__u32 modules[DIFF_SIDES];
	unsigned int similarity; /* thousandths */
};

static int compare_bases(const void *left, const void *right)
{
	const struct diff_module *a = left, *b = right;

	return strcmp(a->base, b->base);
}

static struct diff_module *find_module(const struct diff_modules *modules, enum diff_side side,
				       const char *base)
{
	const struct diff_module key = { base };

	return bsearch(&key, modules->modules[side], modules->n[side], sizeof(key), compare_bases);
}

/* Collects the base names of the files that contain printed frames. */
static int list_modules(struct diff_modules *modules, const struct diff_input *input,
			enum diff_side side)
{
	const struct profile *profile = input->profile;
	_cleanup_(free_ptr) bool *is_used = calloc(profile->n_modules + 1, sizeof(*is_used));
	struct diff_module *list = calloc(profile->n_modules + 1, sizeof(*list));
	size_t n = 0, n_different = 0;

	modules->modules[side] = list;
	modules->by_id[side] = calloc(profile->n_modules + 1, sizeof(__u32));
	if (!is_used || !list || !modules->by_id[side])
		return -ENOMEM;
	for (size_t i = 0; i < input->view->n_labels; i++) {
		if (input->view->labels[i].module)
			is_used[input->view->labels[i].module - 1] = true;
	}
	for (size_t i = 0; i < profile->n_modules; i++) {
		if (is_used[i])
			list[n++].base = profile_module__basename(&profile->modules[i]);
	}
	qsort(list, n, sizeof(*list), compare_bases);
	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(list[i].base, list[n_different - 1].base))
			list[n_different++] = list[i];
	}
	modules->n[side] = n_different;
	for (size_t i = 0; i < profile->n_modules; i++) {
		const struct diff_module *found =
			find_module(modules, side, profile_module__basename(&profile->modules[i]));

		if (found)
			modules->by_id[side][i] = found - list;
	}
	return 0;
}

static void match_namesakes(struct diff_modules *modules)
{
	for (size_t i = 0; i < modules->n[DIFF_BEFORE]; i++) {
		struct diff_module *module = &modules->modules[DIFF_BEFORE][i];
		struct diff_module *other = find_module(modules, DIFF_AFTER, module->base);

		if (other)
			module->is_matched = other->is_matched = true;
	}
}

/* Returns whether the name is a library's: "libm.so", "ld-2.31.so", "libc.so.6". */
static bool is_library(const char *base)
{
	for (const char *at = base; (at = strstr(at, ".so")); at++) {
		if (!at[3] || at[3] == '.')
			return true;
	}
	return false;
}

/*
 * Returns the program of the first process whose file the other side lacks; NULL if there is none.
 * Complete stacks begin in the program's start code or, in threads, in a library. Processes before
 * it, such as a shell, run a file that both sides have.
 */
static struct diff_module *find_program(const struct diff_modules *modules,
					const struct diff_input *input, enum diff_side side)
{
	const struct profile *profile = input->profile;
	struct diff_module *program = NULL;
	__u32 process = UINT32_MAX;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct profile_stack *stack = &profile->stacks[count->stack - 1];
		struct diff_module *module;
		const char *base;
		__u32 id;

		if (count->process >= process || stack->end != AP_END_COMPLETE || !stack->n_frames)
			continue;
		id = profile->frames[stack->frames[stack->n_frames - 1] - 1].module;
		if (!id)
			continue;
		base = profile_module__basename(&profile->modules[id - 1]);
		module = is_library(base) ? NULL : find_module(modules, side, base);
		if (module && !module->is_matched) {
			program = module;
			process = count->process;
		}
	}
	return program;
}

static unsigned int likeness_of(const char *a, const char *b)
{
	__u16 pairs_a[DIFF_NAME_PAIRS], pairs_b[DIFF_NAME_PAIRS];
	size_t n_a = diff_name__pairs(a, pairs_a), n_b = diff_name__pairs(b, pairs_b);

	return diff_name__shared_pairs(pairs_a, n_a, pairs_b, n_b);
}

/* Sorts the two names, so that the result does not depend on the sides. */
static void sort_bases(const struct diff_module *before, const struct diff_module *after,
		       const char *bases[DIFF_SIDES])
{
	bool in_order = strcmp(before->base, after->base) < 0;

	bases[0] = in_order ? before->base : after->base;
	bases[1] = in_order ? after->base : before->base;
}

/* Treats two files with different names as one. */
static int match_two(struct diff_module *before, struct diff_module *after)
{
	const char *bases[DIFF_SIDES];

	before->is_matched = after->is_matched = true;
	sort_bases(before, after, bases);
	if (asprintf(&before->name, "%s|%s", bases[0], bases[1]) < 0) {
		before->name = NULL;
		return -ENOMEM;
	}
	after->name = strdup(before->name);
	return after->name ? 0 : -ENOMEM;
}

static int match_programs(struct diff_modules *modules, const struct diff_input inputs[DIFF_SIDES])
{
	struct diff_module *before = find_program(modules, &inputs[DIFF_BEFORE], DIFF_BEFORE);
	struct diff_module *after = find_program(modules, &inputs[DIFF_AFTER], DIFF_AFTER);

	return before && after ? match_two(before, after) : 0;
}

static int compare_likeness(const void *left, const void *right, void *context)
{
	const struct diff_modules *modules = context;
	const struct likeness *a = left, *b = right;
	const char *bases_a[DIFF_SIDES], *bases_b[DIFF_SIDES];
	int order;

	if (a->similarity != b->similarity)
		return a->similarity > b->similarity ? -1 : 1;
	sort_bases(&modules->modules[DIFF_BEFORE][a->modules[DIFF_BEFORE]],
		   &modules->modules[DIFF_AFTER][a->modules[DIFF_AFTER]], bases_a);
	sort_bases(&modules->modules[DIFF_BEFORE][b->modules[DIFF_BEFORE]],
		   &modules->modules[DIFF_AFTER][b->modules[DIFF_AFTER]], bases_b);
	order = strcmp(bases_a[0], bases_b[0]);
	return order ? order : strcmp(bases_a[1], bases_b[1]);
}

static size_t count_unmatched(const struct diff_modules *modules, enum diff_side side)
{
	size_t n = 0;

	for (size_t i = 0; i < modules->n[side]; i++)
		n += !modules->modules[side][i].is_matched;
	return n;
}

static int list_likenesses(const struct diff_modules *modules, struct likeness **list, size_t *n)
{
	size_t room = 0;

	for (size_t i = 0; i < modules->n[DIFF_BEFORE]; i++) {
		const struct diff_module *before = &modules->modules[DIFF_BEFORE][i];

		for (size_t j = 0; j < modules->n[DIFF_AFTER] && !before->is_matched; j++) {
			const struct diff_module *after = &modules->modules[DIFF_AFTER][j];
			struct likeness likeness = { .modules = { i, j } };

			if (after->is_matched)
				continue;
			likeness.similarity = likeness_of(before->base, after->base);
			if (likeness.similarity < DIFF_NAMES_ALIKE)
				continue;
			if (array__reserve(list, &room, *n + 1, sizeof(**list)))
				return -ENOMEM;
			(*list)[(*n)++] = likeness;
		}
	}
	return 0;
}

static int match_alike(struct diff_modules *modules)
{
	_cleanup_(free_ptr) struct likeness *list = NULL;
	size_t n = 0;

	for (int side = 0; side < DIFF_SIDES; side++) {
		if (count_unmatched(modules, side) > MOST_COMPARED)
			return 0;
	}
	if (list_likenesses(modules, &list, &n))
		return -ENOMEM;
	if (n)
		qsort_r(list, n, sizeof(*list), compare_likeness, modules);
	for (size_t i = 0; i < n; i++) {
		struct diff_module *before =
			&modules->modules[DIFF_BEFORE][list[i].modules[DIFF_BEFORE]];
		struct diff_module *after =
			&modules->modules[DIFF_AFTER][list[i].modules[DIFF_AFTER]];

		if (!before->is_matched && !after->is_matched && match_two(before, after))
			return -ENOMEM;
	}
	return 0;
}

int diff_modules__match(struct diff_modules *modules, const struct diff_input inputs[DIFF_SIDES])
{
	int err = 0;

	*modules = (struct diff_modules){ 0 };
	for (int side = 0; side < DIFF_SIDES && !err; side++)
		err = list_modules(modules, &inputs[side], side);
	if (err)
		return err;
	match_namesakes(modules);
	err = match_programs(modules, inputs);
	if (!err)
		err = match_alike(modules);
	for (int side = 0; side < DIFF_SIDES && !err; side++) {
		for (size_t i = 0; i < modules->n[side] && !err; i++) {
			struct diff_module *module = &modules->modules[side][i];

			if (!module->name)
				module->name = strdup(module->base);
			err = module->name ? 0 : -ENOMEM;
		}
	}
	return err;
}

void diff_modules__release(struct diff_modules *modules)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		for (size_t i = 0; i < modules->n[side]; i++)
			free(modules->modules[side][i].name);
		free(modules->modules[side]);
		free(modules->by_id[side]);
	}
}
