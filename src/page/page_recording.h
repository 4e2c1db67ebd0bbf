/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes the data of a recording for the page of `allocprof html`: what was selected of each
 * count, by the nodes of a trie, and blocks by the epochs of their birth and death.
 * web/recording.js reads it.
 */
#ifndef ALLOCPROF_PAGE_RECORDING_H
#define ALLOCPROF_PAGE_RECORDING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "page_trie.h"

struct event_blocks;
struct filtered;
struct findings;
struct moved;
struct page_source;
struct report;

/* The largest number of epochs in a page; longer time lines merge epochs. A recording has at most
 * 1024. */
#define PAGE_MAX_EPOCHS 2048

/* The pointers belong to the caller. */
struct page_recording {
	struct page_input input;
	const struct filtered *filtered; /* filtered counts, which @input has, too */
	/* Which lifetimes are selected, by index; NULL without --live. */
	const bool *lifetimes;
	bool selects_blocks; /* filter__selects_blocks() */
	const __u32 *nodes;  /* node of each count, by its id - 1; 0: not selected */
	const char *name;    /* name of the data file */
	const struct page_trie *trie;
	/* What is to be said first of all blocks of a report, and that report; NULL: not known. */
	const struct findings *findings;
	const struct report *report;
	/* The costs that moved since the recording with which this one is compared. */
	const struct moved *moved;
	size_t n_moved;
	bool knows_moved;
	const struct event_blocks *blocks; /* single blocks; NULL: they are not known */
	const struct page_source *source;  /* lines of source; NULL: they are not shown */
};

/* The epochs of the time line. */
struct page_epochs {
	__u64 end_ns;	/* end of the recording */
	__u64 n;	/* 0: without --live */
	__u64 epoch_ns; /* length of the page's epochs */
	__u64 per;	/* number of the profile's epochs in one of the page's */
};

/*
 * Writes the blocks "<prefix>.meta", "<prefix>.rows.*", "<prefix>.lifetimes.*",
 * "<prefix>.sizes.*", "<prefix>.ages.*", "<prefix>.leaks.*",
 * "<prefix>.blocks.*" and "<prefix>.source.*". Returns 0 or a negative errno.
 */
int page_recording__write(const struct page_recording *recording, const char *prefix, FILE *to);

/* Returns the title of a recording: its command or process, and its run. The caller frees it; NULL
 * if there is no memory. */
char *page_recording__title(const struct page_recording *recording);

#endif
