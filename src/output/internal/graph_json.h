/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data of `allocprof graph` as JSON (allocprof-graph(1)). */
#ifndef ALLOCPROF_GRAPH_JSON_H
#define ALLOCPROF_GRAPH_JSON_H

#include <stdio.h>

struct graph;
struct graph_words;

/* 0, -ENOMEM or the negative errno of the write. */
int graph_json__write(const struct graph *graph, const struct graph_words *words, FILE *to);

#endif
