// SPDX-License-Identifier: GPL-3.0-or-later
/* Removes V8's mark of the compiler from the name of a JavaScript function. */
#include "js_tier.h"

#include <stdio.h>
#include <string.h>

#include "array.h"

char *js_tier__remove(const char *name)
{
	/* V8 marks the names of these kinds. RegExp: is not among them: the text of an expression may begin like a mark. */
	static const char *const kinds[] = { "JS:", "Eval:", "Script:", "Function:",
					     "LazyCompile:" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);
		char *text;

		if (strncmp(name, kinds[i], len))
			continue;
		if (!name[len] || !strchr("~^+*", name[len]))
			return NULL;
		/* A quote follows where the code is for one context. */
		return asprintf(&text, "%s%s", kinds[i], name + len + 1 + (name[len + 1] == '\'')) <
				       0
			       ? NULL
			       : text;
	}
	return NULL;
}
