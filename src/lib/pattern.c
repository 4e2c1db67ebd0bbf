// SPDX-License-Identifier: GPL-3.0-or-later
#include "pattern.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"

/* regcomp(3) copies a part that is repeated, so that an expression of fifty characters can take
 * all memory. MAX_COPIED limits the parts of an expression that are copies, MAX_NESTED how deep
 * regcomp(3) recurses. Neither limits its time, which may be exponential if a repeated part may be
 * empty. */
#define MAX_COPIED 2000
#define MAX_NESTED 100

/* Returns the number of copies that the repetition at *@at makes of what precedes it, and moves *@at behind it. Returns 0 if
 * there is no repetition. */
static size_t take_repetition(const char **at)
{
	size_t least, most;
	char *end;

	switch (**at) {
	case '*':
	case '?':
		++*at;
		return 1;
	case '+':
		++*at;
		return 2;
	case '{':
		break;
	default:
		return 0;
	}
	if (!isdigit((unsigned char)(*at)[1]) && (*at)[1] != ',')
		return 0;
	least = most = strtoul(*at + 1, &end, 10);
	if (*end == ',')
		most = strtoul(end + 1, &end, 10);
	*at = *end == '}' ? end + 1 : end;
	if (most < least)
		most = least;
	/* Add one: without an upper bound regcomp(3) makes one more copy, and even for {0} it
	 * makes one. */
	return most < MAX_COPIED ? most + 1 : MAX_COPIED;
}

/* Returns the end of a set of characters; @at is behind the bracket that opens it. */
static const char *skip_set(const char *at)
{
	at += *at == '^';
	at += *at == ']';
	while (*at && *at != ']') {
		const char end[] = { at[1], ']', '\0' };
		const char *inner = NULL;

		if (*at == '[' && at[1] && strchr(".:=", at[1]))
			inner = strstr(at + 2, end);
		at = inner ? inner + 2 : at + 1;
	}
	return at + (*at == ']');
}

/* Returns the number of parts of the expression from *@at to the end of its group, and moves *@at there. It stops counting
 * once there are more than @most, and returns a number larger than that. */
static size_t count_parts(const char **at, size_t most, int depth)
{
	size_t sum = 0, last = 0, copies;

	while (**at && sum + last <= most) {
		copies = take_repetition(at);
		if (copies) {
			last = (last + 1) * copies;
			continue;
		}
		sum += last;
		last = 1;
		switch (*(*at)++) {
		case '(':
			if (depth == MAX_NESTED)
				return most + 1;
			last += count_parts(at, most, depth + 1);
			break;
		case ')':
			if (depth)
				return sum;
			break;
		case '[':
			*at = skip_set(*at);
			break;
		case '\\':
			*at += **at != '\0';
			break;
		default:
			break;
		}
	}
	return sum + last;
}

bool regex__is_bounded(const char *expression)
{
	size_t most = strlen(expression) + 2 + MAX_COPIED;

	return count_parts(&expression, most, 0) <= most;
}

int pattern__parse(struct pattern *pattern, const char *text, struct error *error)
{
	_cleanup_(free_ptr) char *inner = NULL;
	size_t len = strlen(text);
	char why[128];
	int status;

	*pattern = (struct pattern){ .text = text };
	if (len < 2 || text[0] != '/' || text[len - 1] != '/') {
		pattern->is_glob = strpbrk(text, "*?[") != NULL;
		return 0;
	}
	inner = strndup(text + 1, len - 2);
	if (!inner)
		return -ENOMEM;
	if (!regex__is_bounded(inner))
		return error__set(
			error, -EINVAL,
			"the regular expression '%s' is too large once its repetitions are written out; "
			"repeat less of what repeats already",
			text);
	status = regcomp(&pattern->regex, inner, REG_EXTENDED | REG_NOSUB);
	if (status) {
		regerror(status, &pattern->regex, why, sizeof(why));
		return error__set(
			error, -EINVAL,
			"'%s' is no regular expression: %s; see regex(7) for extended ones", text,
			why);
	}
	pattern->is_regex = true;
	return 0;
}

bool pattern__match(const struct pattern *pattern, const char *name)
{
	if (pattern->is_regex)
		return !regexec(&pattern->regex, name, 0, NULL, 0);
	/* As a wildcard, the name "operator new[]" would not match itself. */
	if (!strcmp(pattern->text, name))
		return true;
	return pattern->is_glob && !fnmatch(pattern->text, name, 0);
}

void pattern__release(struct pattern *pattern)
{
	if (pattern->is_regex)
		regfree(&pattern->regex);
	pattern->is_regex = false;
}
