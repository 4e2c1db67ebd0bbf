/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Name patterns of options: exact, with wildcards, or a /regex/. */
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
 * Parses @text, which must outlive the pattern: "/.../" is an extended regular expression that may
 * match anywhere in a name, text with '*', '?' or '[' is a shell wildcard, anything else an exact
 * name. 0, or -EINVAL with @error set. To be released.
 */
int pattern__parse(struct pattern *pattern, const char *text, struct error *error);
bool pattern__match(const struct pattern *pattern, const char *name);
void pattern__release(struct pattern *pattern);

#endif
