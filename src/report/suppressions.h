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
	__u64 blocks, size_bytes; /* what the suppression hid; the filter maintains it */
};

struct suppressions {
	struct suppression *list; /* in the order of the file */
	size_t n, room;
};

/* Reads "leak:template" lines, '#' comments and empty lines from @path. Returns 0, or a negative
 * errno with @error set and @suppressions unchanged. The caller releases it. */
int suppressions__read(const char *path, struct suppressions *suppressions, struct error *error);
/* Returns the index of the first template that matches @text, or -1. */
int suppressions__find(const struct suppressions *suppressions, const char *text);
void suppressions__release(struct suppressions *suppressions);

/* Returns whether @template matches anywhere in @text, as the sanitizers do; '^' at its beginning
 * and '$' at its end bind it to the start and the end, and '*' matches any text. */
bool suppression__match(const char *template, const char *text);

#endif
