// SPDX-License-Identifier: GPL-3.0-or-later
/* Patterns, and the options that select: the first line is an option's argument, the second a name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "data_options.h"
#include "fuzz.h"
#include "pattern.h"

/* Longer ones, and those with more repetitions, take regcomp(3) minutes; nobody but the user writes them. */
#define MOST_BYTES	 64
#define MOST_REPETITIONS 2

static bool is_slow(const char *text)
{
	int n = 0;

	for (const char *at = text; *at; at++)
		n += strchr("*+?", *at) != NULL;
	return strlen(text) > MOST_BYTES || n > MOST_REPETITIONS || strpbrk(text, "{\\");
}

static void match(const char *text, const char *name)
{
	struct error error = { "" };
	struct pattern pattern;

	if (is_slow(text))
		return;
	if (pattern__parse(&pattern, text, &error)) {
		FUZZ_CHECK(error.text[0]);
		return;
	}
	pattern__match(&pattern, name);
	pattern__match(&pattern, "operator new[](unsigned long)");
	pattern__release(&pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int keys[] = { OPT_OLDER,	     OPT_MIN_LIFETIME, OPT_MAX_LIFETIME,
				    OPT_FREED_AFTER, OPT_MIN_SIZE,     OPT_MAX_SIZE,
				    OPT_STACK,	     OPT_NOT_STACK,    OPT_PROCESS,
				    OPT_RUN,	     OPT_WHERE };
	uint32_t choice = fuzz__take(data, &size);
	char *text = fuzz__text(data, size), *name = text + strcspn(text, "\n");
	struct filter_choice filter = { 0 };
	struct error error = { "" };

	if (*name)
		*name++ = '\0';
	match(text, name);
	if (filter_choice__parse(&filter, keys[choice % ARRAY_SIZE(keys)], text, &error))
		FUZZ_CHECK(error.text[0]);
	filter_choice__release(&filter);
	free(text);
	return 0;
}
