/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs a child process that turns one text into another: a shell command of the user's, or our own
 * code that hostile input may crash or keep busy forever. The child can neither block nor end this
 * process.
 */
#ifndef ALLOCPROF_COPROCESS_H
#define ALLOCPROF_COPROCESS_H

#include <stddef.h>
#include <stdio.h>

struct error;

struct coprocess {
	const char *command;		    /* for /bin/sh -c; or NULL: a fork calls @serve, */
	void (*serve)(FILE *in, FILE *out); /* with little memory and stderr on /dev/null */
	unsigned int timeout_ms;	    /* wall clock, for the whole exchange */
	size_t max_output;		    /* bytes */
};

/*
 * Writes @input, closes the child's input, and reads its output into *@output: NUL-terminated, to
 * be freed also on failure, NULL if there was none. 0 if the child exited with status 0. Else
 * @error is set and the child's process group was killed: -ETIMEDOUT, -EMSGSIZE (more than
 * @max_output), -ECHILD (it failed or crashed), -ENOMEM, or the error of pipe() or fork().
 */
int coprocess__run(const struct coprocess *coprocess, const char *input, size_t input_size,
		   char **output, size_t *output_size, struct error *error);

#endif
