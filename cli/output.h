/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes reports to stdout or to the file of -o. */
#ifndef ALLOCPROF_OUTPUT_H
#define ALLOCPROF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct error;

/*
 * Opens @path for writing, or stdout if it is NULL; refuses @input, the data file that was read.
 * *@output is to be closed by output__close(). 0 or a negative errno with @error set.
 */
int output__open(const char *path, const char *input, FILE **output, struct error *error);

/*
 * Opens @path like output__open(), with a pager if @pages and it is stdout, calls @write, and closes
 * it. 0, or a negative errno for output__status().
 */
int output__write(const char *path, const char *input, bool pages,
		  int (*write)(FILE *to, const void *context), const void *context,
		  struct error *error);

/* The exit status of a command that failed with @err, after printing the sentence. */
int output__status(int err, const struct error *error);

/* Only that check: 0, or -EINVAL with @error set if @path (NULL: stdout) is @input. */
int output__check(const char *path, const char *input, struct error *error);

/*
 * For a report that is written after a long run. output__reserve() checks that @path can be written
 * and does not change its contents; output__replace() writes @text there and closes it like
 * output__close(); output__discard() leaves all as it was. *@created: the file is new. If there is
 * no room for @text, an older file keeps its contents and a created one is removed.
 */
int output__reserve(const char *path, FILE **output, bool *created, struct error *error);
int output__replace(FILE *output, const char *path, bool created, const char *text, size_t size,
		    struct error *error);
void output__discard(FILE *output, const char *path, bool created);

/*
 * Flushes, closes, and waits for the pager. @err is the result of the writing. 0, -EPIPE without a
 * message (the reader has closed the pipe), or a negative errno with @error set.
 */
int output__close(FILE *output, const char *path, int err, struct error *error);

#endif
