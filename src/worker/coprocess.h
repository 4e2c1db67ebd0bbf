/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs a shell command of the user's that turns one text into another, as the user who called sudo and without
 * capabilities. It can neither block nor end this process.
 */
#ifndef ALLOCPROF_COPROCESS_H
#define ALLOCPROF_COPROCESS_H

#include <stddef.h>

struct error;

struct coprocess {
	const char *command;	 /* for /bin/sh -c */
	unsigned int timeout_ms; /* wall clock, for the whole exchange */
	size_t max_output;	 /* bytes */
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
