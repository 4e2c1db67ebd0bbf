/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes reports to stdout or to the file of -o. */
#ifndef ALLOCPROF_OUTPUT_FILE_H
#define ALLOCPROF_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "new_file.h"

struct error;

/*
 * Opens @path for writing, or stdout if @path is NULL, with a pager if @pages. Calls @write,
 * flushes and closes the output, and waits for the pager. A file at @path is replaced when all is
 * written, and stays if that fails. @input is as for output_file__check_data(), which is called
 * first. Returns 0, -EPIPE without a sentence if the reader has closed the pipe, or another
 * negative errno with @error set.
 */
int output_file__write(const char *path, const char *input, bool pages,
		       int (*write)(FILE *to, const void *context), const void *context,
		       struct error *error);

/* Prints the sentence of @error for a command that failed with @err. Returns the exit status. */
int output_file__status(int err, const struct error *error);

/*
 * Refuses to write to @path, the argument of @option (NULL: stdout), if it is the file @input
 * (NULL: none), whose contents would be lost; @what says what @input is, such as "the budget".
 * Returns 0, or -EINVAL with @error set.
 */
int output_file__check(const char *path, const char *option, const char *input, const char *what,
		       struct error *error);
/* Do the same for -o: the first function for the data file @input and its event log, the second
 * for an event log alone. */
int output_file__check_data(const char *path, const char *input, struct error *error);
int output_file__check_log(const char *path, const char *input, struct error *error);

/* The file of a report that is written after a long run. All members but path and option are
 * zeroed. The caller releases it. */
struct late_output {
	const char *path;   /* NULL: no file is wanted */
	const char *option; /* the option that names the file: "-o" */
	struct new_file file;
	bool is_reserved;
};

/* Checks that the file can be written, without changing it. Returns 0 or a negative errno with
 * @error set. */
int late_output__reserve(struct late_output *output, struct error *error);
/* Replaces the file by @text; if that fails, an older file stays. Returns 0, -EPIPE, or another
 * negative errno with @error set. */
int late_output__write(struct late_output *output, const char *text, size_t size,
		       struct error *error);
void late_output__release(struct late_output *output);

#endif
