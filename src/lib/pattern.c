// SPDX-License-Identifier: GPL-3.0-or-later
#include "pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"

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
	/* The name "operator new[]" would be a wildcard. */
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
