/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a legend calls a stack. */
#ifndef ALLOCPROF_GRAPH_LABEL_H
#define ALLOCPROF_GRAPH_LABEL_H

#include <stddef.h>

/* So many callers are worth a reader's time. */
#define GRAPH_LABEL_CALLERS 6

struct graph;
struct stack_groups;

struct graph_label {
	char *name;			    /* the innermost frame that is printed; owned */
	char *callers[GRAPH_LABEL_CALLERS]; /* the frames from there on outwards; owned */
	size_t n_callers;
};

/* Labels for the series of @graph, which was made with @groups. To be given to graph_label__free().
 * 0 or -ENOMEM. */
int graph_label__new(const struct stack_groups *groups, const struct graph *graph,
		     struct graph_label **labels);
void graph_label__free(struct graph_label *labels, size_t n);

#endif
