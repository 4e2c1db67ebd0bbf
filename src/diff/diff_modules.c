// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "diff_internal.h"
#include "profile.h"
#include "stack_view.h"

/* Limit of files without a counterpart that are compared with each other. */
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

/* Collects the base names of the files that printed frames are in. */
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

/* "libm.so", "ld-2.31.so", "libc.so.6". */
static bool is_library(const char *base)
{
	for (const char *at = base; (at = strstr(at, ".so")); at++) {
		if (!at[3] || at[3] == '.')
			return true;
	}
	return false;
}

/*
 * The program of the first process whose file the other side lacks: complete stacks begin in the
 * program's start code or, in threads, in a library. Processes before it, such as a shell, run a
 * file that both sides have. NULL if there is none.
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
