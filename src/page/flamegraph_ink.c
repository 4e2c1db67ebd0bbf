// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses the colours of boxes, and names them in the legend. */
#include "flamegraph_ink.h"

#include <errno.h>
#include <linux/types.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "page_trie.h"
#include "path.h"

/*
 * Hues of Okabe and Ito, which all people can tell apart, light enough for dark text: OKLCH with a
 * lightness of 0.80, 0.82 and 0.84. web/flame_colour.js has the same. Neighbours of one kind get
 * slightly different shades, so that boxes are seen as boxes.
 */
#define SHADES 3

static const char *const kinds[FRAME_KINDS][SHADES] = {
	[FRAME_KIND_OWN] = { "#edb25a", "#f3b861", "#fabe67" },
	[FRAME_KIND_LIBRARY] = { "#87c6f2", "#8dccf9", "#94d3ff" },
	[FRAME_KIND_RUNTIME] = { "#b8beca", "#bec4d0", "#c5cbd7" },
	[FRAME_KIND_ALLOCATOR] = { "#e8a8c5", "#efaecc", "#f6b4d2" },
	[FRAME_KIND_UNKNOWN] = { "#bec0aa", "#c5c6b0", "#cbcdb7" },
	[FRAME_KIND_PROCESS] = { "#bfbeb5", "#c6c4bc", "#cccbc2" },
	[FRAME_KIND_THREAD] = { "#c0beb0", "#c7c5b6", "#cdcbbc" },
	[FRAME_KIND_MISSING] = { "#e7ada3", "#eeb4aa", "#f5bab0" },
};
/* Colours of modules. None of them is that of a kind that frames without a module have, such as
 * the allocator's. */
static const char *const modules[FLAMEGRAPH_MODULES][SHADES] = {
	{ "#edb25a", "#f3b861", "#fabe67" }, { "#87c6f2", "#8dccf9", "#94d3ff" },
	{ "#84d1af", "#8ad7b6", "#91debc" }, { "#fea47c", "#ffab82", "#ffb188" },
	{ "#c9c261", "#d0c967", "#d6cf6e" }, { "#c5b3ea", "#ccb9f1", "#d2bff8" },
	{ "#7cced2", "#83d4d8", "#89dbdf" },
};
static const char *const others[SHADES] = { "#babec6", "#c0c4cc", "#c7cbd3" };

static const char *module_of(const struct page_trie *trie, __u32 node)
{
	const char *path = trie->frames.frames[trie->node_frames[node]].module;

	return node && path ? path__name(path) : NULL;
}

struct weighed_module {
	const char *name;
	double weight;
	bool is_own;
};

static int compare_names(const void *left, const void *right)
{
	const struct weighed_module *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static int compare_weights(const void *left, const void *right)
{
	const struct weighed_module *a = left, *b = right;

	if (a->is_own != b->is_own)
		return a->is_own ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Finds the greatest modules, those with own code first, as web/flame_colour.js does. */
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

		if (!name)
			continue;
		list[n] = (struct weighed_module){ .name = name };
		/* A call within the module is already part of its caller's total. */
		if (!above || strcmp(name, above) != 0)
			list[n].weight = totals[node];
		list[n++].is_own =
			trie->frames.frames[trie->node_frames[node]].kind == FRAME_KIND_OWN;
	}
	qsort(list, n, sizeof(*list), compare_names);
	for (size_t i = 0; i < n; i++) {
		if (!n_names || strcmp(list[n_names - 1].name, list[i].name) != 0) {
			list[n_names++] = list[i];
			continue;
		}
		list[n_names - 1].weight += list[i].weight;
		list[n_names - 1].is_own |= list[i].is_own;
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

/* Returns a shade that depends only on the name. */
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
		return kinds[FRAME_KIND_PROCESS][1];
	if (!ink->by_module || !frame->module)
		return kinds[frame->kind][shade_of(frame->name)];
	module = path__name(frame->module);
	for (size_t i = 0; i < ink->n_modules; i++)
		if (!strcmp(ink->modules[i], module))
			return modules[i][shade_of(frame->name)];
	return others[shade_of(frame->name)];
}

struct ink_colour ink_colour__of(const char *text)
{
	struct ink_colour colour;

	snprintf(colour.text, sizeof(colour.text), "%.7s", text);
	return colour;
}

/* Returns a part of a colour of sRGB, 0 to 255, from a linear one of 0 to 1. */
static int srgb_of(double linear)
{
	double part = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;

	return lround(255 * fmin(fmax(part, 0), 1));
}

/* Returns a colour of OKLCH (CSS Color 4, 10.4) with the hue of which cosine and sine are given. */
static struct ink_colour colour_of_oklch(double lightness, double chroma, double cosine,
					 double sine)
{
	double a = chroma * cosine, b = chroma * sine;
	double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
	double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
	double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
	struct ink_colour colour;

	snprintf(colour.text, sizeof(colour.text), "#%02x%02x%02x",
		 srgb_of(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) & 0xff,
		 srgb_of(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) & 0xff,
		 srgb_of(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s) & 0xff);
	return colour;
}

/* Blue has a hue of 245°, orange of 55°. web/flame_colour.js has the same. */
struct ink_colour flamegraph_ink__change(double change)
{
	double strength = sqrt(fmin(fabs(change), 1));
	bool shrank = change < 0;

	return colour_of_oklch(0.91 - 0.16 * strength, 0.13 * strength,
			       shrank ? -0.42261826 : 0.57357644,
			       shrank ? -0.90630779 : 0.81915204);
}

const char *flamegraph_ink__rest(void)
{
	return "#e8e8e5";
}

static bool legend_of_changes(size_t i, const char **title, struct ink_colour *colour)
{
	static const struct {
		const char *title;
		double change;
	} entries[] = {
		{ "new", 1 },	    { "grew", 0.4 }, { "did not change", 0 },
		{ "shrank", -0.4 }, { "gone", -1 },
	};

	if (i >= ARRAY_SIZE(entries))
		return false;
	*title = entries[i].title;
	*colour = flamegraph_ink__change(entries[i].change);
	return true;
}

static bool legend_of_kinds(const struct flamegraph_ink *ink, size_t i, const char **title,
			    struct ink_colour *colour)
{
	for (int kind = 0; kind < FRAME_KINDS; kind++) {
		if (!ink->has_kind[kind] || i--)
			continue;
		*title = frame_kind__title(kind);
		*colour = ink_colour__of(kinds[kind][1]);
		return true;
	}
	return false;
}

static bool legend_of_modules(const struct flamegraph_ink *ink, size_t i, const char **title,
			      struct ink_colour *colour)
{
	size_t n = ink->n_modules + ink->has_other_modules;

	if (i >= n)
		return legend_of_kinds(ink, i - n, title, colour);
	*title = i < ink->n_modules ? ink->modules[i] : "others";
	*colour = ink_colour__of(i < ink->n_modules ? modules[i][1] : others[1]);
	return true;
}

bool flamegraph_ink__legend(const struct flamegraph_ink *ink, bool of_changes, size_t i,
			    const char **title, struct ink_colour *colour)
{
	if (of_changes)
		return legend_of_changes(i, title, colour);
	if (ink->by_module)
		return legend_of_modules(ink, i, title, colour);
	return legend_of_kinds(ink, i, title, colour);
}
