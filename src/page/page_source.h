/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collects the lines of source around the places of code in stacks, for `allocprof html --source`. */
#ifndef ALLOCPROF_PAGE_SOURCE_H
#define ALLOCPROF_PAGE_SOURCE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "page_trie.h"

/* Lines of source are confidential, so nothing is read unless the user asks for it; and a data file may be
 * hostile, so only what has a name of source is read, and no more than these. */
#define SOURCE_MAX_FILES      2000
#define SOURCE_MAX_FILE_BYTES (4U << 20)
#define SOURCE_MAX_BYTES      (8U << 20) /* of all lines in the page */
#define SOURCE_MAX_LINE_BYTES 400
/* The lines before and behind each that a stack goes through. */
#define SOURCE_CONTEXT_LINES 5

/* A line of a file. */
struct source_place {
	__u32 file; /* id of the file; 0: no place */
	__u32 line;
};

/* Consecutive lines of a file. */
struct source_excerpt {
	__u32 file;  /* index into the files */
	__u32 first; /* number of the first line */
	char *text;  /* the lines, with newlines between them; owned */
};

struct source_file {
	const char *path; /* owned by the profile */
	const char *note; /* why there are no lines of it, or that they are not as recorded; NULL */
};

struct page_source {
	struct source_place *places; /* sorted; the first one is no place */
	size_t n_places;
	struct source_file *files; /* those that places are in, sorted as these */
	size_t n_files;
	struct source_excerpt *excerpts;
	size_t n_excerpts, excerpts_room;
	/* The places of stacks from the outermost on; a frame is an index of a place. The last one of a
	 * stack, and no other, may be no place. */
	struct page_trie paths;
	__u32 *nodes; /* node of each count, by its id - 1 */
};

/*
 * Finds the lines of the stacks that @nodes, by count's id - 1, has a node for, and reads what is around them: of regular files
 * with an absolute path, as the user who called sudo. A file that cannot be read has a note. The caller releases *@source in any
 * case; @input outlives it. Returns 0 or -ENOMEM.
 */
int page_source__make(const struct page_input *input, const __u32 *nodes,
		      struct page_source *source);
/* Writes the blocks "<prefix>.source.*", which web/source.js reads. Returns 0 or a negative errno. */
int page_source__write(const struct page_source *source, const char *prefix, FILE *to);
void page_source__release(struct page_source *source);

#endif
