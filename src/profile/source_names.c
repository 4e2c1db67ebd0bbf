// SPDX-License-Identifier: GPL-3.0-or-later
#include "source_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"

static const char *const kinds[AP_SOURCE_KINDS] = {
	[AP_SOURCE_ALLOC] = "alloc",
	[AP_SOURCE_REALLOC] = "realloc",
	[AP_SOURCE_FREE] = "free",
};

static const char name_characters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

const char *source_kind__name(enum ap_source_kind kind)
{
	return kinds[kind];
}

static int find_source(const struct source_names *names, const char *name, size_t len)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *known = names->functions[i * AP_SOURCE_KINDS];

		if (!strncmp(known, name, len) && known[len] == '.')
			return (int)i;
	}
	return -ENOENT;
}

static int add_source(struct source_names *names, const char *name, size_t len)
{
	int index = find_source(names, name, len);

	if (!len || len > SOURCE_NAME_MAX || strspn(name, name_characters) < len)
		return -EINVAL;
	if (index >= 0)
		return index;
	if (names->n == AP_MAX_SOURCES)
		return -E2BIG;
	for (int kind = 0; kind < AP_SOURCE_KINDS; kind++)
		snprintf(names->functions[names->n * AP_SOURCE_KINDS + kind],
			 sizeof(names->functions[0]), "%.*s.%s", (int)len, name, kinds[kind]);
	return (int)names->n++;
}

int source_names__add(struct source_names *names, const char *name)
{
	return add_source(names, name, strlen(name));
}

bool source_names__has(const struct source_names *names, const char *name)
{
	return find_source(names, name, strlen(name)) >= 0;
}

const char *source_names__function(const struct source_names *names, enum ap_function function)
{
	size_t at = (size_t)function - AP_DEFINED;

	if (function < AP_DEFINED || !names || at >= names->n * AP_SOURCE_KINDS)
		return profile__function_name(function);
	return names->functions[at];
}

int source_names__find(const struct source_names *names, const char *function)
{
	int known = profile__function_by_name(function);

	if (known >= 0 || !names)
		return known;
	for (size_t i = 0; i < names->n * AP_SOURCE_KINDS; i++)
		if (!strcmp(names->functions[i], function))
			return AP_DEFINED + (int)i;
	return -ENOENT;
}

int source_names__take(struct source_names *names, const char *function)
{
	int known = source_names__find(names, function), source;
	const char *dot = strrchr(function, '.');

	if (known >= 0 || !dot)
		return known;
	for (int kind = 0; kind < AP_SOURCE_KINDS; kind++) {
		if (strcmp(dot + 1, kinds[kind]) != 0)
			continue;
		source = add_source(names, function, dot - function);
		if (source < 0)
			return source == -EINVAL ? -ENOENT : source;
		return source__function(source, kind);
	}
	return -ENOENT;
}
