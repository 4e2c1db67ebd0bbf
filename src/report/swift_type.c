// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads names of Swift's functions that allocate objects: initializers of classes, and those that make arrays' storage. */
#include "swift_type.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"

/* A part of a name; text is NULL: there is none. */
struct part {
	const char *text;
	size_t size;
};

bool swift_type__is_swift(const char *symbol)
{
	return !strncmp(symbol, "$s", 2) || !strncmp(symbol, "$S", 2) ||
	       !strncmp(symbol, "$e", 2) || !strncmp(symbol, "_$s", 3);
}

bool swift_type__makes_objects(const char *name)
{
	static const char *const names[] = { "swift_allocObject", "_swift_allocObject_",
					     "swift::swift_allocObject" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Returns the end of what is in brackets from @open on, behind the closing one; NULL: they do not end. */
static const char *skip_brackets(const char *open)
{
	size_t depth = 0;

	for (const char *at = open; *at; at++) {
		depth += strchr("<([", *at) != NULL;
		depth -= strchr(">)]", *at) && !(*at == '>' && at > open && at[-1] == '-');
		if (!depth)
			return at + 1;
	}
	return NULL;
}

/* Counts what commas separate in a list. */
static size_t count_arguments(struct part list)
{
	size_t n = 1;

	for (size_t i = 0; i < list.size; i++) {
		const char *end;

		n += list.text[i] == ',';
		if (!strchr("<([", list.text[i]))
			continue;
		end = skip_brackets(list.text + i);
		if (!end || end > list.text + list.size)
			return 0;
		i = end - 1 - list.text;
	}
	return n;
}

static bool skip_prefix(const char **name, const char *prefix)
{
	if (strncmp(*name, prefix, strlen(prefix)) != 0)
		return false;
	*name += strlen(prefix);
	return true;
}

/* Returns the function of which @name is a specialization, and what it has for the parameters in *@arguments. NULL: it is another
 * kind of copy. */
static const char *skip_specializations(const char *name, struct part *arguments)
{
	*arguments = (struct part){ 0 };
	skip_prefix(&name, "specialized ");
	for (;;) {
		bool is_generic = skip_prefix(&name, "generic specialization ") ||
				  skip_prefix(&name, "generic not re-abstracted specialization ");
		const char *begin, *end;

		if (!is_generic && !skip_prefix(&name, "function signature specialization "))
			return name;
		begin = name + 1;
		end = *name == '<' ? skip_brackets(name) : NULL;
		if (!end || strncmp(end, " of ", 4) != 0)
			return NULL;
		name = end + 4;
		if (!is_generic)
			continue;
		/* A generic copy of another one has parameters in the place of arguments. */
		if (arguments->text)
			return NULL;
		skip_prefix(&begin, "serialized, ");
		*arguments = (struct part){ begin, end - 1 - begin };
	}
}

/* Copies the name of a class from @from up to @end, without the file of a private one: "app.(Node in _0123)". Returns NULL if it is
 * not only that, as in "closure #1 in app.Node", or if there is no memory. */
static char *copy_class(const char *from, const char *end)
{
	char *copy = malloc(end - from + 1), *to = copy;
	bool is_private = false;

	for (const char *at = from; copy && at < end; at++) {
		if (*at == '(' && !is_private) {
			is_private = true;
		} else if (is_private && !strncmp(at, " in _", 5)) {
			is_private = false;
			at = memchr(at, ')', end - at) ?: end;
		} else if (isalnum((unsigned char)*at) || *at == '.' || *at == '_' ||
			   (unsigned char)*at >= 0x80) {
			*to++ = *at;
		} else {
			free(copy);
			return NULL;
		}
	}
	if (!copy || is_private || to == copy) {
		free(copy);
		return NULL;
	}
	*to = '\0';
	return copy;
}

/* Returns the parameters of the class that an initializer returns, of "(…) throws -> app.Box<A>". Their text is NULL if it has
 * none. Returns false if it is not known, and of a class within a generic one. */
static bool find_parameters(const char *behind, struct part *parameters)
{
	const char *result = skip_brackets(behind), *open, *end;

	*parameters = (struct part){ 0 };
	if (!result)
		return false;
	result = strstr(result, " -> ");
	open = result ? strchr(result, '<') : NULL;
	if (!open)
		return true;
	end = skip_brackets(open);
	if (!end || (*end && strcmp(end, "?") != 0))
		return false;
	*parameters = (struct part){ open + 1, end - 1 - (open + 1) };
	return true;
}

static int with_arguments(const char *class, struct part arguments, char **type)
{
	int len = asprintf(type, "%s<%.*s>", class, (int)arguments.size, arguments.text);

	if (len >= 0)
		return 0;
	*type = NULL;
	return -ENOMEM;
}

#define INITIALIZER ".__allocating_init"

int swift_type__of(const char *name, char **type, bool *is_sure)
{
	/* They fill the new storage, and call nothing of the program's. */
	static const char *const of_arrays[] = {
		"Swift._allocateUninitializedArray<A>(",
		"Swift._ContiguousArrayBuffer.init(_uninitializedCount:",
		"Swift._ContiguousArrayBuffer._consumeAndCreateNew(",
	};
	_cleanup_(free_ptr) char *class = NULL;
	struct part arguments, parameters;
	const char *at;

	*type = NULL;
	*is_sure = false;
	name = skip_specializations(name, &arguments);
	if (!name)
		return 0;
	for (size_t i = 0; arguments.text && i < ARRAY_SIZE(of_arrays); i++) {
		if (strncmp(name, of_arrays[i], strlen(of_arrays[i])) != 0 ||
		    count_arguments(arguments) != 1)
			continue;
		*is_sure = true;
		return with_arguments("Swift._ContiguousArrayStorage", arguments, type);
	}
	at = strstr(name, INITIALIZER "(");
	if (!at || !find_parameters(at + strlen(INITIALIZER), &parameters))
		return 0;
	class = copy_class(name, at);
	if (!class)
		return 0;
	if (!parameters.text) {
		*type = class;
		class = NULL;
		return 0;
	}
	if (!arguments.text || count_arguments(arguments) != count_arguments(parameters))
		return 0;
	return with_arguments(class, arguments, type);
}
