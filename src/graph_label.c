// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_label.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "graph_data.h"
#include "profile.h"

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

/* NULL without memory. */
static char *frame_name(const struct profile *profile, const struct profile_frame *frame)
{
	const struct profile_function *function = profile__frame_function(profile, frame);
	const struct profile_module *module;
	char *name;

	if (function && *function->name)
		return strdup(function->name);
	if (!frame->module)
		return strdup("[unknown]");
	module = &profile->modules[frame->module - 1];
	if (asprintf(&name, "[%s+0x%llx]", profile_module__basename(module), frame->offset) < 0)
		return NULL;
	return name;
}

static int label_stack(const struct profile *profile, const struct profile_stack *stack,
		       bool wrappers, struct graph_label *label)
{
	for (__u32 i = 0; i < stack->n_frames && label->n_callers < GRAPH_LABEL_CALLERS; i++) {
		_cleanup_(free_ptr) char *name =
			frame_name(profile, &profile->frames[stack->frames[i] - 1]);

		if (!name)
			return -ENOMEM;
		if (!wrappers && is_wrapper(name))
			continue;
		if (label->name)
			label->callers[label->n_callers++] = name;
		else
			label->name = name;
		name = NULL;
	}
	return 0;
}

static int label_series(const struct profile *profile, const struct graph_series *series,
			struct graph_label *label)
{
	int err = 0;

	if (!series->stack) {
		if (asprintf(&label->name, "%zu other stack%s", series->n_stacks,
			     series->n_stacks == 1 ? "" : "s") < 0)
			label->name = NULL;
	} else {
		const struct profile_stack *stack = &profile->stacks[series->stack - 1];

		err = label_stack(profile, stack, false, label);
		if (!err && !label->name)
			err = label_stack(profile, stack, true, label);
		if (!err && !label->name)
			label->name = strdup("[no frames]");
	}
	return err ? err : label->name ? 0 : -ENOMEM;
}

int graph_label__new(const struct profile *profile, const struct graph *graph,
		     struct graph_label **labels)
{
	struct graph_label *made = calloc(graph->n_series + 1, sizeof(*made));
	int err = made ? 0 : -ENOMEM;

	for (size_t i = 0; i < graph->n_series && !err; i++)
		err = label_series(profile, &graph->series[i], &made[i]);
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
