/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where reports go: stdout, or the file of -o. */
#ifndef ALLOCPROF_OUTPUT_H
#define ALLOCPROF_OUTPUT_H

#include <stdio.h>

struct error;

/*
 * Opens @path for writing, or stdout for NULL. @input is the file that was read, which @path must
 * not be. 0 or a negative errno with @error set. @output is for output__close().
 */
int output__open(const char *path, const char *input, FILE **output, struct error *error);

/*
 * Flushes and closes. @err is what the writing returned. 0, -EPIPE without words (nobody reads on),
 * or a negative errno with @error set.
 */
int output__close(FILE *output, const char *path, int err, struct error *error);

#endif
