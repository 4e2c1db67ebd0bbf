// SPDX-License-Identifier: GPL-3.0-or-later
/* The environment of a command into which the library is loaded. */
#include "preload_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "LD_PRELOAD=";

static bool is_preload(const char *entry)
{
	return !strncmp(entry, variable, sizeof(variable) - 1);
}

char **preload__environment(const struct preload *preload, char *const *environment, bool is_other)
{
	const char *name = is_other ? INSIDE_OTHER : INSIDE_LIBRARY;
	const char *others = "";
	size_t n = 0, text_bytes, at = 0;
	char **copy, *text;

	for (; environment[n]; n++)
		if (is_preload(environment[n]))
			others = environment[n] + sizeof(variable) - 1;
	text_bytes = sizeof(variable) + strlen(preload->directory) + sizeof("/:") + strlen(name) +
		     strlen(others);
	copy = malloc((n + 2) * sizeof(*copy) + text_bytes);
	if (!copy)
		return NULL;
	text = (char *)(copy + n + 2);
	snprintf(text, text_bytes, "%s%s/%s%s%s", variable, preload->directory, name,
		 *others ? ":" : "", others);
	/* In the place of the first one: programs that print their environment see no other order. */
	for (size_t i = 0; i < n; i++) {
		if (!is_preload(environment[i]))
			copy[at++] = environment[i];
		else if (text) {
			copy[at++] = text;
			text = NULL;
		}
	}
	if (text)
		copy[at++] = text;
	copy[at] = NULL;
	return copy;
}
