/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How options name functions, files and threads: as they are, with wildcards, or by a /regex/. */
#ifndef ALLOCPROF_PATTERN_H
#define ALLOCPROF_PATTERN_H

#include <regex.h>
#include <stdbool.h>

struct error;

struct pattern {
	const char *text; /* the caller's */
	bool is_regex, is_glob;
	regex_t regex;
};

/*
 * Takes @text, which must outlive the pattern: "/.../" is an extended regular expression that may match
 * anywhere in a name, one with '*', '?' or '[' is as the shell's, anything else the whole name.
 * 0, or -EINVAL with @error set. To be released.
 */
int pattern__parse(struct pattern *pattern, const char *text, struct error *error);
bool pattern__match(const struct pattern *pattern, const char *name);
void pattern__release(struct pattern *pattern);

#endif
