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

/* The kind of code that a frame is, which colours a flame graph. */

/* Kinds of frames, in the order of `kinds` in web/trie.js. */
enum page_kind {
	PAGE_KIND_OWN,	   /* programs, and libraries that the system did not install */
	PAGE_KIND_LIBRARY, /* libraries that the system installed */
	/* Runtimes of languages: libc, libstdc++, Rust's std, Go's runtime, interpreters. */
	PAGE_KIND_RUNTIME,
	PAGE_KIND_ALLOCATOR, /* malloc and its kin, and libraries that define them */
	PAGE_KIND_UNKNOWN,   /* code without a file */
	PAGE_KIND_PROCESS,   /* no code, but the name of a process */
	PAGE_KIND_THREAD,    /* no code, but the name of a thread */
	PAGE_KIND_MISSING,   /* no code, but the reason why frames are missing */
	PAGE_KINDS,
};

/* Returns the kind of the function @name of the file @module (a path; NULL: unknown). */
enum page_kind page_kind__of(const char *name, const char *module);
/* Returns the kind's title for legends: "own code", "runtime". */
const char *page_kind__title(enum page_kind kind);

/* The frames of which the stacks of a page consist: functions, and the names around them. */

/* The strings belong to the caller, and must outlive the table. */
struct page_frame {
	const char *name;
	const char *module;    /* path of the module; NULL: none or unknown */
	const char *file;      /* source file; NULL: unknown */
	__u32 line, last_line; /* the least and the greatest line; 0: unknown */
	enum page_kind kind;
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
