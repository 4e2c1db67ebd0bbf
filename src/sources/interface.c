// SPDX-License-Identifier: GPL-3.0-or-later
#include "interface.h"

#include <stddef.h>
#include <string.h>

#include "array.h"

const struct interface_function *interface__find(const char *name, enum interface_family *family)
{
	return interface__find_row(name, family);
}

struct word {
	const char *text;
	size_t len;
};

static bool word__is(struct word word, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == word.len && !strncmp(word.text, *list, word.len))
			return true;
	return false;
}

/* Whether the word is a stem, with an optional letter before and after it, and an optional
 * number. */
static bool word__is_request(struct word word)
{
	static const char *const stems[] = { "malloc",	 "calloc",     "realloc",  "reallocarray",
					     "alloc",	 "valloc",     "memalign", "free",
					     "new",	 "delete",     "newarray", "deletearray",
					     "allocate", "deallocate", "dealloc",  NULL };
	static const char before[] = "cdmnprsuvxz", behind[] = "fnx";

	while (word.len && strchr("0123456789", word.text[word.len - 1]))
		word.len--;
	for (int cut_before = 0; cut_before < 2; cut_before++)
		for (int cut_behind = 0; cut_behind < 2; cut_behind++) {
			struct word stem = word;

			if (word.len < 3)
				return false;
			if (cut_before && !strchr(before, *stem.text))
				continue;
			if (cut_behind && !strchr(behind, stem.text[stem.len - 1]))
				continue;
			stem.text += cut_before;
			stem.len -= cut_before + cut_behind;
			if (word__is(stem, stems))
				return true;
		}
	return false;
}

bool interface__copies(const char *name)
{
	return !strcmp(name, "strdup") || !strcmp(name, "strndup");
}

bool interface__looks_alike(const char *name)
{
	/* Words of functions about memory that do not allocate. */
	static const char *const others[] = {
		"stats",    "info",	"size",	      "usable",	  "good",   "trim",    "state",
		"conf",	    "hook",	"hooks",      "handler",  "set",    "get",     "print",
		"register", "deferred", "is",	      "check",	  "count",  "mode",    "opt",
		"option",   "init",	"fini",	      "start",	  "stop",   "dump",    "debug",
		"fork",	    "prefork",	"postfork",   "thread",	  "query",  "total",   "bytes",
		"limit",    "memory",	"list",	      "lists",	  "err",    "error",   "log",
		"verify",   "return",	"accounting", "callback", "enable", "disable", "shutdown",
		NULL,
	};
	bool requests = interface__copies(name);

	/* Names with a leading underscore are internal to a library. */
	if (*name == '_')
		return false;
	while (*name) {
		struct word word = { name, strcspn(name, "_") };

		if (word__is(word, others))
			return false;
		requests |= word__is_request(word);
		name += word.len + (name[word.len] == '_');
	}
	return requests;
}

bool interface_function__is_classic(const struct interface_function *function)
{
	return function >= interface_functions && function < interface_functions + AP_C_FUNCTIONS;
}

int interface_function__number(const struct interface_function *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(interface_functions); i++)
		if (function == &interface_functions[i])
			return i;
	return -1;
}

const struct interface_function *interface__at(size_t number)
{
	return number < ARRAY_SIZE(interface_functions) ? &interface_functions[number] : NULL;
}
