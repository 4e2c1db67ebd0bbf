/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where reports go: stdout, or the file of -o. */
#ifndef ALLOCPROF_OUTPUT_H
#define ALLOCPROF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct error;

/*
 * Opens @path for writing, or stdout for NULL. @input is the file that was read, which @path must
 * not be. 0 or a negative errno with @error set. @output is for output__close().
 */
int output__open(const char *path, const char *input, FILE **output, struct error *error);

/* That of it alone: 0, or -EINVAL with @error set where @path (NULL: stdout) is @input. */
int output__check(const char *path, const char *input, struct error *error);

/*
 * The parts of it for a report that is written after a long run: output__reserve() makes sure
 * that @path can be written and leaves what is in it alone, output__replace() puts @text there and
 * closes, as output__close() does, and output__discard() leaves everything as it was.
 * *@created: the file was not there before. Where there is no room for @text, an older file keeps what
 * it has and a created one goes.
 */
int output__reserve(const char *path, FILE **output, bool *created, struct error *error);
int output__replace(FILE *output, const char *path, bool created, const char *text, size_t size,
		    struct error *error);
void output__discard(FILE *output, const char *path, bool created);

/*
 * Flushes and closes, and waits for the pager. @err is what the writing returned. 0, -EPIPE without words (nobody reads on),
 * or a negative errno with @error set.
 */
int output__close(FILE *output, const char *path, int err, struct error *error);

#endif
