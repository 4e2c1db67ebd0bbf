/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the time line for `allocprof graph`. */
#ifndef ALLOCPROF_GRAPH_OUTPUT_H
#define ALLOCPROF_GRAPH_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "graph_draw.h"

struct cairo_library;
struct filtered;
struct graph;
struct profile;
struct stack_groups;

struct graph_output {
	const struct graph *graph; /* made of @profile and @groups */
	const struct stack_groups *groups;
	const struct filtered *filtered;
	const struct profile *profile;
	bool strict;			   /* mention incomplete stacks however few they are */
	bool json;			   /* allocprof-graph/1 instead of a picture */
	const struct cairo_library *cairo; /* draws the picture; NULL with json */
	enum graph_format format;
};

/* Writes the time line to @to and flushes it. Returns 0, -ENOMEM, -EIO if cairo fails, or the
 * negative errno of the write. */
int graph_output__write(const struct graph_output *output, FILE *to);

#endif
