/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Leaks that are known and not to be reported, in the form that LeakSanitizer reads. */
#ifndef ALLOCPROF_SUPPRESSIONS_H
#define ALLOCPROF_SUPPRESSIONS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

struct suppression {
	char *template;		  /* owned */
	__u64 blocks, size_bytes; /* what it hid; counted by whoever applies it */
};

struct suppressions {
	struct suppression *list; /* in the file's order */
	size_t n;
};

/*
 * Reads "leak:template" lines, '#' comments and empty lines from the file @path. 0 or a negative errno
 * with @error set; @suppressions is then as it was. To be released.
 */
int suppressions__read(const char *path, struct suppressions *suppressions, struct error *error);
/* The index of the first whose template is in @text, or -1. */
int suppressions__find(const struct suppressions *suppressions, const char *text);
void suppressions__release(struct suppressions *suppressions);

/*
 * As the sanitizers match: @template may be anywhere in @text, unless '^' begins it (then at the start)
 * or '$' ends it (then up to the end); '*' stands for anything.
 */
bool suppression__match(const char *template, const char *text);

#endif
