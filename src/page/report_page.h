/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page of a recording, or of two that are compared: allocprof-html(1). */
#ifndef ALLOCPROF_REPORT_PAGE_H
#define ALLOCPROF_REPORT_PAGE_H

#include <stdio.h>

#include "page_recording.h"

struct report_page {
	const struct page_trie *trie;	     /* of the stacks of both */
	const struct page_recording *after;  /* what the page is about */
	const struct page_recording *before; /* what it is compared with, or NULL */
};

/* Writes to @to and flushes. 0 or a negative errno. */
int report_page__write(const struct report_page *page, FILE *to);

#endif
