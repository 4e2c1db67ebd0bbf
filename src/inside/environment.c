// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "environment.h"

#include "inside_abi.h"
#include "objects.h"
#include "sys.h"

static const char variable[] = "LD_PRELOAD=";

char ***environment__variable(void)
{
	static char ***found;
	char ***at = __atomic_load_n(&found, __ATOMIC_RELAXED);

	if (at)
		return at;
	/* A program may have a copy of it, which comes first in the list. */
	at = objects__find("environ");
	if (!at)
		at = objects__find("__environ");
	__atomic_store_n(&found, at, __ATOMIC_RELAXED);
	return at;
}

static bool ends_word(char c)
{
	return !c || c == ':' || c == ' ';
}

/* The length of this library's path where @text begins with it as a word, or 0. */
static size_t own_word(const char *text, const char *directory)
{
	static const char *const names[] = { "/" INSIDE_LIBRARY, "/" INSIDE_OTHER };
	size_t length = text__length(directory);

	if (!text__begins(text, directory))
		return 0;
	for (int i = 0; i < 2; i++)
		if (text__begins(text + length, names[i]) &&
		    ends_word(text[length + text__length(names[i])]))
			return length + text__length(names[i]);
	return 0;
}

/* Removes this library from a value of LD_PRELOAD. */
static void remove_own(char *value, const char *directory)
{
	while (*value) {
		size_t length = own_word(value, directory);
		char *from = value + length, *to = value;

		if (!length) {
			while (!ends_word(*value))
				value++;
			value += !!*value;
			continue;
		}
		from += !!*from;
		while ((*to++ = *from++))
			;
	}
}

bool environment__is_preload(const char *entry)
{
	return text__begins(entry, variable);
}

bool environment__hide(const char *directory)
{
	char ***at = environment__variable();
	char **entry, **to;

	if (!at || !*at)
		return false;
	for (entry = to = *at; *entry; entry++) {
		if (environment__is_preload(*entry)) {
			char *value = *entry + sizeof(variable) - 1;
			size_t length = text__length(value), left;

			remove_own(value, directory);
			left = text__length(value);
			/* /proc/self/environ has the whole text. */
			memset(value + left, 0, length - left);
			if (length && !left) {
				memset(*entry, 0, sizeof(variable));
				continue;
			}
		}
		*to++ = *entry;
	}
	*to = NULL;
	return true;
}

size_t environment__count(char *const *environment)
{
	size_t n = 0;

	while (environment && environment[n])
		n++;
	return n;
}

bool environment__has(char *const *environment, const char *directory)
{
	return own_word(environment__preloaded(environment), directory);
}

const char *environment__preloaded(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (environment__is_preload(*environment))
			return *environment + sizeof(variable) - 1;
	return "";
}

size_t environment__text_bytes(char *const *environment, const struct preloaded *library)
{
	return sizeof(variable) + text__length(library->directory) + sizeof("/:") +
	       text__length(library->name) + text__length(environment__preloaded(environment));
}

void environment__with_library(char *const *environment, size_t n, const struct preloaded *library,
			       char **out, char *text)
{
	char *stop = text + environment__text_bytes(environment, library), *end;
	const char *others = environment__preloaded(environment);
	bool is_placed = false;
	size_t length;

	end = text__append(text, stop, variable);
	end = text__append(end, stop, library->directory);
	end = text__append(end, stop, "/");
	end = text__append(end, stop, library->name);
	/* It may be there already. */
	length = own_word(others, library->directory);
	others += length + (length && others[length]);
	if (*others) {
		end = text__append(end, stop, ":");
		text__append(end, stop, others);
	}
	for (size_t i = 0; i < n; i++) {
		if (!environment__is_preload(environment[i])) {
			*out++ = environment[i];
		} else if (!is_placed) {
			*out++ = text;
			is_placed = true;
		}
	}
	if (!is_placed)
		*out++ = text;
	*out = NULL;
}
