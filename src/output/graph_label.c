// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_label.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_axis.h"
#include "graph_data.h"
#include "stack_groups.h"
#include "text.h"

static int label_group(const struct stack_groups *groups, const struct stack_group *group,
		       struct graph_label *label)
{
	for (__u32 i = 0; i < group->n_frames && label->n_callers < GRAPH_LABEL_CALLERS; i++) {
		char *name = strdup(groups->labels[group->frames[i]].text);

		if (!name)
			return -ENOMEM;
		if (i)
			label->callers[label->n_callers++] = name;
		else
			label->name = name;
	}
	return 0;
}

static int label_series(const struct stack_groups *groups, const struct graph_series *series,
			struct graph_label *label)
{
	char count[32];

	if (series->stack)
		return label_group(groups, &groups->groups[series->group], label);
	graph_axis__print_count(series->n_stacks, count, sizeof(count));
	if (asprintf(&label->name, "%s %s", count,
		     plural__of("other stack{|s}", series->n_stacks).text) < 0)
		label->name = NULL;
	return label->name ? 0 : -ENOMEM;
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
