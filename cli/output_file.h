/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes reports to stdout or to the file of -o. */
#ifndef ALLOCPROF_OUTPUT_FILE_H
#define ALLOCPROF_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "new_file.h"

struct error;

/*
 * Opens @path for writing, or stdout if it is NULL, with a pager if @pages; calls @write, flushes and
 * closes, and waits for the pager. What is at @path is replaced when all is written, and stays if that fails. Refuses what output_file__check_data() does of @input. 0, -EPIPE without a
 * sentence (the reader has closed the pipe), or a negative errno with @error set.
 */
int output_file__write(const char *path, const char *input, bool pages,
		       int (*write)(FILE *to, const void *context), const void *context,
		       struct error *error);

/* The exit status of a command that failed with @err, after printing the sentence. */
int output_file__status(int err, const struct error *error);

/*
 * 0, or -EINVAL with @error set if @path, that of @option (NULL: stdout), is the file @input (NULL: none), whose contents
 * would be lost; @what says what that is, such as "the budget".
 */
int output_file__check(const char *path, const char *option, const char *input, const char *what,
		       struct error *error);
/* The same for -o, and for the data file @input and its event log, and for the log alone. */
int output_file__check_data(const char *path, const char *input, struct error *error);
int output_file__check_log(const char *path, const char *input, struct error *error);

/* The file of a report that is written after a long run. All else zeroed. To be released. */
struct late_output {
	const char *path;   /* NULL: no file is wanted */
	const char *option; /* that names it: "-o" */
	struct new_file file;
	bool is_reserved;
};

/* Checks that the file can be written, and changes nothing. */
int late_output__reserve(struct late_output *output, struct error *error);
/* Replaces the file by @text; if that fails, an older one stays. 0, -EPIPE, or a negative errno with @error set. */
int late_output__write(struct late_output *output, const char *text, size_t size,
		       struct error *error);
void late_output__release(struct late_output *output);

#endif
