/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A child that turns one text into another: a shell command of the user's, or code of ours that may
 * crash or never end because of what it reads. Nothing that it does can hang or end this process.
 */
#ifndef ALLOCPROF_COPROCESS_H
#define ALLOCPROF_COPROCESS_H

#include <stddef.h>
#include <stdio.h>

struct error;

struct coprocess {
	const char *command; /* for /bin/sh -c, or NULL: then @serve is called in a fork, with */
	void (*serve)(FILE *in, FILE *out); /* little memory and no standard error */
	unsigned int timeout_ms;	    /* of wall clock, for all of it */
	size_t max_output;		    /* bytes */
};

/*
 * Writes all of @input, ends it, and reads all that comes back into *@output, to be freed, which is
 * set in any case (NULL where there was nothing) and ended by '\0'. 0 where the child then ended
 * with status 0. Else @error has a sentence and the child and its own children were killed:
 * -ETIMEDOUT, -EMSGSIZE (more than @max_output), -ECHILD (it failed or crashed), -ENOMEM or what
 * pipe() or fork() said.
 */
int coprocess__run(const struct coprocess *coprocess, const char *input, size_t input_size,
		   char **output, size_t *output_size, struct error *error);

#endif
