// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_label.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_data.h"
#include "stack_groups.h"

/* Functions that tell nothing about who wanted the memory: these names and what begins so. */
static bool is_wrapper(const char *name)
{
	static const char *const prefixes[] = { "operator new", "std::",      "__gnu_cxx::",
						"alloc::",	"core::",     "__rust_",
						"__rdl_",	"hashbrown::" };
	static const char *const names[] = { "xmalloc",	 "xcalloc",   "xrealloc",  "xzalloc",
					     "g_malloc", "g_malloc0", "g_realloc", "g_malloc_n" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static int label_group(const struct stack_groups *groups, const struct stack_group *group,
		       bool wrappers, struct graph_label *label)
{
	for (__u32 i = 0; i < group->n_frames && label->n_callers < GRAPH_LABEL_CALLERS; i++) {
		const char *text = groups->frames[group->frames[i]].text;
		char *name;

		if (!wrappers && is_wrapper(text))
			continue;
		name = strdup(text);
		if (!name)
			return -ENOMEM;
		if (label->name)
			label->callers[label->n_callers++] = name;
		else
			label->name = name;
	}
	return 0;
}

static int label_series(const struct stack_groups *groups, const struct graph_series *series,
			struct graph_label *label)
{
	const struct stack_group *group;
	int err;

	if (!series->stack) {
		if (asprintf(&label->name, "%zu other stack%s", series->n_stacks,
			     series->n_stacks == 1 ? "" : "s") < 0)
			label->name = NULL;
		return label->name ? 0 : -ENOMEM;
	}
	group = &groups->groups[series->group];
	err = label_group(groups, group, false, label);
	return err || label->name ? err : label_group(groups, group, true, label);
}

int graph_label__new(const struct stack_groups *groups, const struct graph *graph,
		     struct graph_label **labels)
{
	struct graph_label *made = calloc(graph->n_series + 1, sizeof(*made));
	int err = made ? 0 : -ENOMEM;

	for (size_t i = 0; i < graph->n_series && !err; i++)
		err = label_series(groups, &graph->series[i], &made[i]);
	if (err) {
		graph_label__free(made, graph->n_series);
		return err;
	}
	*labels = made;
	return 0;
}

void graph_label__free(struct graph_label *labels, size_t n)
{
	for (size_t i = 0; labels && i < n; i++) {
		free(labels[i].name);
		for (size_t j = 0; j < labels[i].n_callers; j++)
			free(labels[i].callers[j]);
	}
	free(labels);
}
