/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frames of a page: functions, their kinds, text and lines. */
#ifndef ALLOCPROF_PAGE_FRAMES_H
#define ALLOCPROF_PAGE_FRAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "hash_table.h"

struct profile;
struct stack_view;

/* What kind of code a frame is, by which a flame graph is coloured. */

/* In the order of `kinds` in web/trie.js. */
enum page_kind {
	PAGE_KIND_OWN,	   /* programs, and libraries that the system did not install */
	PAGE_KIND_LIBRARY, /* libraries that it did */
	PAGE_KIND_RUNTIME, /* of a language: libc, libstdc++, Rust's std, Go's runtime, interpreters */
	PAGE_KIND_ALLOCATOR, /* malloc and its kin, and libraries that define them */
	PAGE_KIND_UNKNOWN,   /* code without a file */
	PAGE_KIND_PROCESS,   /* no code: the name of a process, */
	PAGE_KIND_THREAD,    /* of a thread, */
	PAGE_KIND_MISSING,   /* or why frames are missing */
	PAGE_KINDS,
};

/* The kind of the function @name of the file @module (a path; NULL: unknown). */
enum page_kind page_kind__of(const char *name, const char *module);
/* For legends: "own code", "runtime". */
const char *page_kind__title(enum page_kind kind);

/* The frames that the stacks of a page are made of: functions, and what is put around them. */

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

/* A frame for each label of @view (with_locations), whose strings are @profile's and @view's. To be freed;
 * NULL on ENOMEM. */
struct page_frame *page_labels__new(const struct profile *profile, const struct stack_view *view);

#endif
