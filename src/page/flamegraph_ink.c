// SPDX-License-Identifier: GPL-3.0-or-later
#include "flamegraph_ink.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "path.h"

/*
 * Hues of Okabe and Ito, which all people can tell apart, light enough for dark text: OKLCH with a
 * lightness of 0.80, 0.82 and 0.84. web/flame_colour.js has the same hues. Neighbours of one kind differ
 * a little, so that boxes are seen as boxes.
 */
#define SHADES 3

static const char *const kinds[PAGE_KINDS][SHADES] = {
	[PAGE_KIND_OWN] = { "#edb25a", "#f3b861", "#fabe67" },
	[PAGE_KIND_LIBRARY] = { "#87c6f2", "#8dccf9", "#94d3ff" },
	[PAGE_KIND_RUNTIME] = { "#b8beca", "#bec4d0", "#c5cbd7" },
	[PAGE_KIND_ALLOCATOR] = { "#e8a8c5", "#efaecc", "#f6b4d2" },
	[PAGE_KIND_UNKNOWN] = { "#bec0aa", "#c5c6b0", "#cbcdb7" },
	[PAGE_KIND_PROCESS] = { "#bfbeb5", "#c6c4bc", "#cccbc2" },
	[PAGE_KIND_THREAD] = { "#c0beb0", "#c7c5b6", "#cdcbbc" },
	[PAGE_KIND_MISSING] = { "#e7ada3", "#eeb4aa", "#f5bab0" },
};
/* None is that of a kind that frames without a module have, such as the allocator's. */
static const char *const modules[FLAMEGRAPH_MODULES][SHADES] = {
	{ "#edb25a", "#f3b861", "#fabe67" }, { "#87c6f2", "#8dccf9", "#94d3ff" },
	{ "#84d1af", "#8ad7b6", "#91debc" }, { "#fea47c", "#ffab82", "#ffb188" },
	{ "#c9c261", "#d0c967", "#d6cf6e" }, { "#c5b3ea", "#ccb9f1", "#d2bff8" },
	{ "#7cced2", "#83d4d8", "#89dbdf" },
};
static const char *const others[SHADES] = { "#babec6", "#c0c4cc", "#c7cbd3" };

/* From no change to all of it, as web/flame_colour.js has them at 0, 1/4, 1/2, 3/4 and 1. */
#define STEPS 5
static const char *const grown[STEPS] = { "#e1e1e1", "#e9bda0", "#ebad83", "#eca16d", "#ed9658" };
static const char *const shrunk[STEPS] = { "#e1e1e1", "#a5cdef", "#8ac3f4", "#74bcf8", "#60b6fa" };

static const char *module_of(const struct page_trie *trie, __u32 node)
{
	const char *path = trie->frames.frames[trie->node_frames[node]].module;

	return node && path ? path__name(path) : NULL;
}

struct weighed_module {
	const char *name;
	double weight;
};

static int compare_names(const void *left, const void *right)
{
	const struct weighed_module *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static int compare_weights(const void *left, const void *right)
{
	const struct weighed_module *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int rank_modules(struct flamegraph_ink *ink, const struct page_trie *trie,
			const double *totals)
{
	_cleanup_(free_ptr) struct weighed_module *list = calloc(trie->n_nodes, sizeof(*list));
	size_t n = 0, n_names = 0;

	if (!list)
		return -ENOMEM;
	for (__u32 node = 1; node < trie->n_nodes; node++) {
		const char *name = module_of(trie, node);
		const char *above = module_of(trie, trie->parents[node]);

		/* What a module calls in itself is no more of it. */
		if (name && !(above && !strcmp(name, above)))
			list[n++] = (struct weighed_module){ name, totals[node] };
	}
	qsort(list, n, sizeof(*list), compare_names);
	for (size_t i = 0; i < n; i++) {
		if (n_names && !strcmp(list[n_names - 1].name, list[i].name))
			list[n_names - 1].weight += list[i].weight;
		else
			list[n_names++] = list[i];
	}
	qsort(list, n_names, sizeof(*list), compare_weights);
	for (size_t i = 0; i < n_names && i < FLAMEGRAPH_MODULES; i++)
		ink->modules[ink->n_modules++] = list[i].name;
	ink->has_other_modules = n_names > FLAMEGRAPH_MODULES;
	return 0;
}

int flamegraph_ink__init(struct flamegraph_ink *ink, const struct page_trie *trie,
			 const double *totals, bool by_module)
{
	*ink = (struct flamegraph_ink){ .by_module = by_module };
	for (size_t i = 0; i < trie->frames.n; i++)
		if (!by_module || !trie->frames.frames[i].module)
			ink->has_kind[trie->frames.frames[i].kind] = true;
	return by_module ? rank_modules(ink, trie, totals) : 0;
}

/* Always the same of a name. */
static size_t shade_of(const char *name)
{
	__u32 hash = 2166136261;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619;
	return (hash ^ hash >> 15) % SHADES;
}

const char *flamegraph_ink__frame(const struct flamegraph_ink *ink, const struct page_frame *frame)
{
	const char *module;

	if (!frame)
		return kinds[PAGE_KIND_PROCESS][1];
	if (!ink->by_module || !frame->module)
		return kinds[frame->kind][shade_of(frame->name)];
	module = path__name(frame->module);
	for (size_t i = 0; i < ink->n_modules; i++)
		if (!strcmp(ink->modules[i], module))
			return modules[i][shade_of(frame->name)];
	return others[shade_of(frame->name)];
}

const char *flamegraph_ink__change(double before, double after)
{
	double greater = before > after ? before : after;
	int step = greater > 0 ? ceil((STEPS - 1) * fabs(after - before) / greater) : 0;

	return after < before ? shrunk[step] : grown[step];
}

const char *flamegraph_ink__rest(void)
{
	return "#e8e8e5";
}

static bool legend_of_changes(size_t i, const char **title, const char **colour)
{
	static const struct {
		const char *title, *colour;
	} entries[] = {
		{ "new", "#ed9658" },	 { "grew", "#ebad83" }, { "did not change", "#e1e1e1" },
		{ "shrank", "#8ac3f4" }, { "gone", "#60b6fa" },
	};

	if (i >= ARRAY_SIZE(entries))
		return false;
	*title = entries[i].title;
	*colour = entries[i].colour;
	return true;
}

static bool legend_of_kinds(const struct flamegraph_ink *ink, size_t i, const char **title,
			    const char **colour)
{
	for (int kind = 0; kind < PAGE_KINDS; kind++) {
		if (!ink->has_kind[kind] || i--)
			continue;
		*title = page_kind__title(kind);
		*colour = kinds[kind][1];
		return true;
	}
	return false;
}

static bool legend_of_modules(const struct flamegraph_ink *ink, size_t i, const char **title,
			      const char **colour)
{
	size_t n = ink->n_modules + ink->has_other_modules;

	if (i >= n)
		return legend_of_kinds(ink, i - n, title, colour);
	*title = i < ink->n_modules ? ink->modules[i] : "others";
	*colour = i < ink->n_modules ? modules[i][1] : others[1];
	return true;
}

bool flamegraph_ink__legend(const struct flamegraph_ink *ink, bool of_changes, size_t i,
			    const char **title, const char **colour)
{
	if (of_changes)
		return legend_of_changes(i, title, colour);
	if (ink->by_module)
		return legend_of_modules(ink, i, title, colour);
	return legend_of_kinds(ink, i, title, colour);
}
