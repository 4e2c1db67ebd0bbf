/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes reports to stdout or to the file of -o. */
#ifndef ALLOCPROF_OUTPUT_FILE_H
#define ALLOCPROF_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct error;

/*
 * Opens @path for writing, or stdout if it is NULL, with a pager if @pages; calls @write, flushes and
 * closes, and waits for the pager. Refuses what output_file__check_data() does of @input. 0, -EPIPE without a
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
	FILE *file;	    /* NULL: not reserved, or written */
	bool created;	    /* the file is new */
};

/* Checks that the file can be written, and does not change its contents. */
int late_output__reserve(struct late_output *output, struct error *error);
/*
 * Replaces the contents by @text. If there is no room for it, an older file keeps its contents and a
 * created one is removed. 0, -EPIPE, or a negative errno with @error set.
 */
int late_output__write(struct late_output *output, const char *text, size_t size,
		       struct error *error);
/* A file that was not written is as it was. */
void late_output__release(struct late_output *output);

#endif
