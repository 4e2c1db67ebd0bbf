/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs a shell command that the user has given and that turns one text into another, as the user
 * who called sudo and without capabilities. The command can neither block nor end this process.
 */
#ifndef ALLOCPROF_COPROCESS_H
#define ALLOCPROF_COPROCESS_H

#include <stddef.h>

struct error;

struct coprocess {
	const char *command;	 /* command line for /bin/sh -c */
	unsigned int timeout_ms; /* limit of the whole exchange, by the wall clock */
	size_t max_output;	 /* limit of the output, in bytes */
};

/*
 * Writes @input, closes the child's input, and reads its output into *@output, which ends with
 * NUL; the caller frees it, also after a failure. It is NULL if there was no output. Returns 0 if
 * the child exited with status 0. Otherwise @error is set and the child's process group was
 * killed. The errors are -ETIMEDOUT, -EMSGSIZE (the output is longer than @max_output), -ECHILD
 * (the command failed or crashed), -ENOMEM, and those of pipe() and fork().
 */
int coprocess__run(const struct coprocess *coprocess, const char *input, size_t input_size,
		   char **output, size_t *output_size, struct error *error);

#endif
