/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frames of a page: functions, their kinds, text and lines. */
#ifndef ALLOCPROF_PAGE_FRAMES_H
#define ALLOCPROF_PAGE_FRAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "frame_kind.h"
#include "hash_table.h"

struct profile;
struct stack_view;

/* The frames of which the stacks of a page consist: functions, and the names around them. */

/* The strings belong to the caller, and must outlive the table. */
struct page_frame {
	const char *name;
	const char *module;    /* path of the module; NULL: none or unknown */
	const char *file;      /* source file; NULL: unknown */
	__u32 line, last_line; /* the least and the greatest line; 0: unknown */
	enum frame_kind kind;
	bool inlined;
};

/* A table of frames. Zeroed it is empty. The caller releases it. */
struct page_frames {
	struct page_frame *frames;
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

/* Adds a frame. Frames with the same name, base name of the module, kind and inlining are one,
 * which has the lines of all. *@at is its index. Returns 0 or -ENOMEM. */
int page_frames__add(struct page_frames *frames, const struct page_frame *frame, __u32 *at);
/* Writes the blocks frames.*, which web/trie.js reads. Returns 0 or -ENOMEM. */
int page_frames__write(const struct page_frames *frames, FILE *to);
void page_frames__release(struct page_frames *frames);

/* Returns an array with a frame for each label of @view (with_locations), whose strings are
 * @profile's and @view's. The caller frees it; NULL if there is no memory. */
struct page_frame *page_labels__new(const struct profile *profile, const struct stack_view *view);

#endif
