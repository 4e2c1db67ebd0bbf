/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A function that the user names, as SYMBOL or SYMBOL@FILE, for the measured window. */
#ifndef ALLOCPROF_WANTED_FUNCTION_H
#define ALLOCPROF_WANTED_FUNCTION_H

#include <stdbool.h>

struct error;
struct function_code;
struct parser;

struct wanted_function {
	char *symbol; /* NULL: not given */
	char *file;   /* a path, a soname, or NULL: the command's program */
	bool found;
	bool missed_files; /* files that may be this one could not be read */
};

/* @text may be NULL; @option is for messages. With @only_code it cannot be a USDT probe ("sdt:provider:name"). -EINVAL
 * with *@error set, -ENOMEM. */
int wanted_function__parse(struct wanted_function *wanted, const char *text, const char *option,
			   bool only_code, struct error *error);
void wanted_function__release(struct wanted_function *wanted);

/* Whether the file is known before the target runs: the program, or a path. */
bool wanted_function__is_path(const struct wanted_function *wanted);

/* Opens that file, for a process with the root directory @root ("" or /proc/PID/root); *@path is the caller's to free,
 * also on failure. The descriptor, or a negative errno. */
int wanted_function__open(const struct wanted_function *wanted, const char *program,
			  const char *root, char **path);

/* Whether the function is one of the file @fd, which the target maps: it has the name or the soname. False where the
 * file is known beforehand. */
bool wanted_function__is_in(struct wanted_function *wanted, struct parser *parser, int fd,
			    const char *path);

/* Why a function whose file is not known beforehand was not found, for after the target's end. */
const char *wanted_function__not_found(const struct wanted_function *wanted);

/* Finds the function's code, or the locations of the USDT probe, in the file, and notes that it was found. As
 * function_code__parse(), but for -ESRCH: there is none. @option is for messages. */
int wanted_function__find(struct wanted_function *wanted, struct parser *parser, int fd,
			  const char *path, const char *option, struct function_code *out,
			  struct error *error);

#endif
