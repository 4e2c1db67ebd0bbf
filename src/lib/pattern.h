/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Patterns of names that options take: an exact name, a wildcard, or a /regex/. */
#ifndef ALLOCPROF_PATTERN_H
#define ALLOCPROF_PATTERN_H

#include <regex.h>
#include <stdbool.h>

struct error;

struct pattern {
	const char *text; /* owned by the caller */
	bool is_regex, is_glob;
	regex_t regex;
};

/* Returns whether regcomp(3) can take the expression: it copies what repeats, up to all memory. */
bool regex__is_bounded(const char *expression);

/*
 * Parses @text, which must outlive the pattern. "/.../" is an extended regular expression that may
 * match anywhere in a name, text with '*', '?' or '[' is a shell wildcard, and anything else is an
 * exact name. Returns 0, and the caller releases the pattern; or -EINVAL with @error set.
 */
int pattern__parse(struct pattern *pattern, const char *text, struct error *error);
bool pattern__match(const struct pattern *pattern, const char *name);
void pattern__release(struct pattern *pattern);

#endif
