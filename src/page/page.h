/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes pages for a browser, each of them one file that loads nothing. */
#ifndef ALLOCPROF_PAGE_H
#define ALLOCPROF_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "page_recording.h"
#include "page_trie.h"

/*
 * Pages for a browser: one HTML file each, with its style sheets, its script and its data inside. A
 * policy in it forbids everything else. web/ has their sources, which embed.py puts into the library.
 */

/* The fixed parts of a page: those before the title, between title and data, and after the data. */
struct page {
	const char *head, *middle, *tail;
};

extern const struct page page_flamegraph; /* web/flamegraph.html */
extern const struct page page_report;	  /* web/report.html */

/* Flame graphs for allocprof-flamegraph(1). */

struct flamegraph_options {
	enum cost cost;
	bool reversed;	   /* from the allocator's functions to their callers */
	bool merged;	   /* recursive calls are one frame */
	bool by_module;	   /* colours are by module; else by kind */
	bool is_flame;	   /* the root is at the bottom; else at the top */
	const char *title; /* NULL: what was recorded */
	__u32 width;	   /* of SVG, in pixels */
};

/* The pointers belong to the caller. For SVG the trie itself is reversed and merged; a page does
 * that in the browser. */
struct flamegraph {
	struct page_graphs graphs;
	struct flamegraph_options options;
};

/* Returns the title, which the caller frees; NULL if there is no memory. */
char *flamegraph__title(const struct flamegraph *flamegraph);
/* Each function writes to @to and flushes. Returns 0, -ENOMEM or the negative errno of a write. */
int flamegraph__write_page(const struct flamegraph *flamegraph, FILE *to);
int flamegraph__write_svg(const struct flamegraph *flamegraph, FILE *to);

/* The page of a recording, or of two that are compared: allocprof-html(1). */

struct report_page {
	const struct page_trie *trie;	     /* trie of the stacks of both recordings */
	const struct page_recording *after;  /* the recording that the page shows */
	const struct page_recording *before; /* the recording with which it is compared, or NULL */
};

/* Writes to @to and flushes. Returns 0 or a negative errno. */
int report_page__write(const struct report_page *page, FILE *to);

#endif
