/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of stacks in the legend. */
#ifndef ALLOCPROF_GRAPH_LABEL_H
#define ALLOCPROF_GRAPH_LABEL_H

#include <stddef.h>

/* Callers that a legend lists at most. */
#define GRAPH_LABEL_CALLERS 6

struct graph;
struct stack_groups;

struct graph_label {
	char *name;			    /* the innermost printed frame; owned */
	char *callers[GRAPH_LABEL_CALLERS]; /* its callers, from the inside out; owned */
	size_t n_callers;
};

/* Makes labels for the series of @graph, which was made with @groups; free with
 * graph_label__free(). 0 or -ENOMEM. */
int graph_label__new(const struct stack_groups *groups, const struct graph *graph,
		     struct graph_label **labels);
void graph_label__free(struct graph_label *labels, size_t n);

#endif
