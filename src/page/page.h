/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Pages for a browser: one HTML file each, with its style sheets, its script and its data inside. A
 * policy in it forbids everything else. web/ has their sources, which embed.py puts into the library.
 */
#ifndef ALLOCPROF_PAGE_H
#define ALLOCPROF_PAGE_H

#include <stdio.h>

/* The parts of a page, between which its title and its data are. */
struct page {
	const char *head, *middle, *tail;
};

extern const struct page page_flamegraph; /* web/flamegraph.html */
extern const struct page page_report;	  /* web/report.html */

/* Writes the page up to its data, which page_data.h writes. Errors of @to are found by page__end(). */
void page__begin(const struct page *page, const char *title, FILE *to);
/* Writes the rest and flushes. 0 or the negative errno of a write. */
int page__end(const struct page *page, FILE *to);

#endif
