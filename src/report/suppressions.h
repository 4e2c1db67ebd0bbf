/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Suppressions of known leaks, in LeakSanitizer's format. */
#ifndef ALLOCPROF_SUPPRESSIONS_H
#define ALLOCPROF_SUPPRESSIONS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

struct suppression {
	char *template;		  /* owned */
	__u64 blocks, size_bytes; /* what it hid; maintained by the filter */
};

struct suppressions {
	struct suppression *list; /* in file order */
	size_t n, room;
};

/* Reads "leak:template" lines, '#' comments and empty lines from @path. 0, or a negative errno with
 * @error set and @suppressions unchanged. To be released. */
int suppressions__read(const char *path, struct suppressions *suppressions, struct error *error);
/* The index of the first template that matches @text, or -1. */
int suppressions__find(const struct suppressions *suppressions, const char *text);
void suppressions__release(struct suppressions *suppressions);

/* Matches as the sanitizers do: anywhere in @text, unless '^' begins @template (at the start) or
 * '$' ends it (at the end); '*' matches anything. */
bool suppression__match(const char *template, const char *text);

#endif
