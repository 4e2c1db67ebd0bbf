/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frames that the stacks of a page are made of: functions, and what is put around them. */
#ifndef ALLOCPROF_PAGE_FRAMES_H
#define ALLOCPROF_PAGE_FRAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "hash_table.h"
#include "page_kind.h"

/* The strings are the caller's, and must outlive the table. */
struct page_frame {
	const char *name;
	const char *module;    /* path; NULL: none or unknown */
	const char *file;      /* source file; NULL: unknown */
	__u32 line, last_line; /* the least and the greatest line; 0: unknown */
	enum page_kind kind;
	bool inlined;
};

/* Zeroed is empty. To be released. */
struct page_frames {
	struct page_frame *frames;
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

/* Frames with the same name, base name of the module, kind and inlining are one, which has the lines of
 * all. *@at is its index. 0 or -ENOMEM. */
int page_frames__add(struct page_frames *frames, const struct page_frame *frame, __u32 *at);
/* Writes the blocks frames.*, which web/trie.js reads. 0 or -ENOMEM. */
int page_frames__write(const struct page_frames *frames, FILE *to);
void page_frames__release(struct page_frames *frames);

#endif
