/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The data of a recording for the page of `allocprof html`: what was selected of each count, by the
 * nodes of a trie, and blocks by the epochs of their birth and death. web/recording.js reads it.
 */
#ifndef ALLOCPROF_PAGE_RECORDING_H
#define ALLOCPROF_PAGE_RECORDING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "page_trie.h"

struct filtered;

/* Limit of epochs in a page; longer time lines merge epochs. A recording has 1024 at the most. */
#define PAGE_MAX_EPOCHS 2048

/* The pointers are the caller's. */
struct page_recording {
	struct page_input input;
	const struct filtered *filtered; /* its counts are those of @input */
	const bool *lifetimes;		 /* selected, by index; NULL without --live */
	bool selects_blocks;		 /* filter__selects_blocks() */
	const __u32 *nodes;		 /* of each count, by its id - 1; 0: not selected */
	const char *name;		 /* of the data file */
};

/* The time line's epochs. */
struct page_epochs {
	__u64 end_ns;	/* of the recording */
	__u64 n;	/* 0: without --live */
	__u64 epoch_ns; /* of those in the page */
	__u64 per;	/* epochs of the profile in one of them */
};

struct page_epochs page_recording__epochs(const struct page_recording *recording);

/*
 * Writes the blocks "<prefix>.meta", "<prefix>.rows.*", "<prefix>.lifetimes.*", "<prefix>.sizes.*",
 * "<prefix>.ages.*" and "<prefix>.leaks.*". 0 or a negative errno.
 */
int page_recording__write(const struct page_recording *recording, const char *prefix, FILE *to);

/* What a recording is called: its command or process, and its run. To be freed; NULL on ENOMEM. */
char *page_recording__title(const struct page_recording *recording);

#endif
