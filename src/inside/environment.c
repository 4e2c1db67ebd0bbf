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
	size_t length = text__length(directory);
	static const char rest[] = "/" INSIDE_LIBRARY;

	if (!text__begins(text, directory) || !text__begins(text + length, rest))
		return 0;
	length += sizeof(rest) - 1;
	return ends_word(text[length]) ? length : 0;
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

bool environment__hide(const char *directory)
{
	char ***at = environment__variable();
	char **entry, **to;

	if (!at || !*at)
		return false;
	for (entry = to = *at; *entry; entry++) {
		if (text__begins(*entry, variable)) {
			char *value = *entry + sizeof(variable) - 1;
			bool was_empty = !*value;

			remove_own(value, directory);
			if (!*value && !was_empty)
				continue;
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

static const char *preloaded(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (text__begins(*environment, variable))
			return *environment + sizeof(variable) - 1;
	return "";
}

size_t environment__text_bytes(char *const *environment, const char *directory)
{
	return sizeof(variable) + text__length(directory) + sizeof("/" INSIDE_LIBRARY ":") +
	       text__length(preloaded(environment));
}

void environment__with_library(char *const *environment, size_t n, const char *directory,
			       char **out, char *text)
{
	char *stop = text + environment__text_bytes(environment, directory), *end;
	const char *others = preloaded(environment);
	bool is_placed = false;

	end = text__append(text, stop, variable);
	end = text__append(end, stop, directory);
	end = text__append(end, stop, "/" INSIDE_LIBRARY);
	if (*others && !own_word(others, directory)) {
		end = text__append(end, stop, ":");
		text__append(end, stop, others);
	}
	for (size_t i = 0; i < n; i++) {
		if (!text__begins(environment[i], variable)) {
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
