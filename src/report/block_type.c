// SPDX-License-Identifier: GPL-3.0-or-later
#include "block_type.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "profile.h"
#include "text.h"
#include "types_data.h"

struct type_rule {
	const char *pattern; /* within the text */
	bool of_argument; /* the type is the first template argument of the function; else its class */
	bool is_sure;
};

/* What a function of a library says of the blocks that it allocates. */
struct function_type {
	char *text;	     /* NULL: nothing */
	bool has_parameters; /* its arguments are not known */
	bool is_sure, is_known;
};

struct block_types {
	const struct profile *profile;
	struct function_type *functions; /* by id - 1; filled when they are asked for */
	char *text;			 /* of the rules */
	struct type_rule *rules;
	size_t n, room;
};

static int add_rule(struct block_types *types, char *line)
{
	struct type_rule rule = { .of_argument = *line == '=', .is_sure = *line == '+' };

	rule.pattern = line + (rule.of_argument || rule.is_sure);
	if (!*line || *line == '#')
		return 0;
	if (array__reserve(&types->rules, &types->room, types->n + 1, sizeof(rule)))
		return -ENOMEM;
	types->rules[types->n++] = rule;
	return 0;
}

struct block_types *block_types__new(const struct profile *profile)
{
	struct block_types *types = calloc(1, sizeof(*types));
	char *rest, *line;
	int err = 0;

	if (!types)
		return NULL;
	types->profile = profile;
	types->functions = calloc(profile->n_functions + 1, sizeof(*types->functions));
	types->text = rest = strdup(TYPES_DATA);
	while (rest && !err && (line = strsep(&rest, "\n")))
		err = add_rule(types, line);
	if (types->text && types->functions && !err)
		return types;
	block_types__free(types);
	return NULL;
}

void block_types__free(struct block_types *types)
{
	if (!types)
		return;
	for (size_t i = 0; types->functions && i < types->profile->n_functions; i++)
		free(types->functions[i].text);
	free(types->functions);
	free(types->text);
	free(types->rules);
	free(types);
}

/* A part of a name. */
struct part {
	const char *text;
	size_t size;
};

static bool is_opening(char c)
{
	return c && strchr("<([{", c);
}

static bool is_closing(const char *name, size_t at)
{
	return name[at] && strchr(">)]}", name[at]) &&
	       !(at && name[at] == '>' && name[at - 1] == '-');
}

/* Returns the size of what is in brackets from @at on, with both of them; 0: it does not end. */
static size_t bracketed_size(const char *name, size_t at, size_t end)
{
	size_t depth = 0;

	for (size_t i = at; i < end; i++) {
		depth += is_opening(name[i]);
		depth -= is_closing(name, i);
		if (!depth)
			return i + 1 - at;
	}
	return 0;
}

/* Returns the size of the part of a scoped name that begins at @at: "map<K, V>" of "map<K, V>::insert". */
static size_t part_size(const char *name, size_t at, size_t end)
{
	size_t i = at;

	/* operator<, operator-> and so on. */
	if (!strncmp(name + at, "operator", strlen("operator")) &&
	    !isalnum(name[at + strlen("operator")]))
		return end - at;
	while (i < end && strncmp(name + i, "::", 2)) {
		size_t size = is_opening(name[i]) ? bracketed_size(name, i, end) : 1;

		if (!size)
			return end - at;
		i += size;
	}
	/* In Rust the arguments follow behind "::". */
	if (i + 2 < end && name[i + 2] == '<' && i > at) {
		size_t size = bracketed_size(name, i + 2, end);

		if (size)
			i += 2 + size;
	}
	return (i < end ? i : end) - at;
}

/* Returns the class within "<alloc::vec::Vec<u8> as core::clone::Clone>", of which @size is the size. */
static struct part implementor_of(const char *name, size_t size)
{
	struct part part = { name + 1, size - 2 };

	for (size_t i = 1; i + 1 < size; i++) {
		size_t inner = is_opening(name[i]) ? bracketed_size(name, i, size - 1) : 0;

		if (inner)
			i += inner - 1;
		else if (!strncmp(name + i, " as ", 4)) {
			part.size = i - 1;
			break;
		}
	}
	return part;
}

/* Returns the rule of a class or a function; NULL: none has it. */
static const struct type_rule *rule_of(const struct block_types *types, struct part part,
				       bool of_argument)
{
	_cleanup_(free_ptr) char *text = strndup(part.text, part.size);

	for (size_t i = 0; text && i < types->n; i++)
		if (types->rules[i].of_argument == of_argument &&
		    text__matches(types->rules[i].pattern, text))
			return &types->rules[i];
	return NULL;
}

/* Returns the first argument of "make_shared<Session, int>". */
static struct part argument_of(struct part function)
{
	const char *open = memchr(function.text, '<', function.size);
	size_t at = open ? (size_t)(open + 1 - function.text) : function.size, end = function.size,
	       i = at;

	while (i < end && function.text[i] != ',' && !is_closing(function.text, i)) {
		size_t size =
			is_opening(function.text[i]) ? bracketed_size(function.text, i, end) : 1;

		i += size ?: end - i;
	}
	return (struct part){ function.text + at, i - at };
}

/* Returns whether arguments of a class of Rust are names of parameters, as its older mangling has them:
 * "alloc::vec::Vec<T,A>". */
static bool has_parameters(const char *type)
{
	if (!strncmp(type, "std::", 5) && strncmp(type, "std::collections::", 18))
		return false;
	for (const char *at = type + 1; type[0] && at[0] && at[1]; at++)
		if (isupper(at[0]) && strchr("<, &", at[-1]) && strchr(">,", at[1]))
			return true;
	return false;
}

/* Returns whether objects of @outer keep their contents in those of @inner. */
static bool keeps_contents_in(const char *outer, const char *inner)
{
	static const struct {
		const char *inner, *outer;
	} pairs[] = {
		{ "std::_Rb_tree<*", "std::m*" },
		{ "std::_Rb_tree<*", "std::set<*" },
		{ "std::__tree<*", "std::m*" },
		{ "std::__tree<*", "std::set<*" },
		{ "std::_Hashtable<*", "std::unordered_*" },
		{ "std::__hash_table<*", "std::unordered_*" },
		{ "alloc::vec::Vec<u8*", "alloc::string::String" },
		{ "alloc::vec::Vec<u8*", "std::ffi::os_str::OsString" },
		{ "alloc::vec::Vec<u8*", "std::path::PathBuf" },
		{ "alloc::vec::Vec<u8*", "alloc::ffi::c_str::CString" },
		{ "alloc::vec::Vec<T*", "alloc::string::String" },
		{ "std::ffi::os_str::OsString", "std::path::PathBuf" },
		{ "alloc::vec::Vec<*", "alloc::collections::binary_heap::*" },
		{ "alloc::boxed::Box<alloc::rc::*", "alloc::rc::Rc<*" },
		{ "alloc::boxed::Box<alloc::sync::*", "alloc::sync::Arc<*" },
		{ "alloc::boxed::Box<alloc::collections::*", "alloc::collections::*" },
		{ "hashbrown::*", "std::collections::*" },
		{ "hashbrown::map::*", "hashbrown::set::*" },
		{ "alloc::collections::btree::map::*", "alloc::collections::btree::set::*" },
		{ "std::collections::hash::map::*", "std::collections::hash::set::*" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (text__matches(pairs[i].inner, inner) && text__matches(pairs[i].outer, outer))
			return true;
	return false;
}

/* Finds the rule and the type that the scoped @name says: the outermost scope with a rule decides. */
static const struct type_rule *find_type(const struct block_types *types, const char *name,
					 struct part *type)
{
	size_t end = strlen(name);

	for (size_t at = 0; at < end;) {
		size_t size = part_size(name, at, end);
		struct part whole = { name, at + size };
		const struct type_rule *rule;

		*type = whole;
		if (!at && *name == '<') {
			*type = implementor_of(name, size);
			return rule_of(types, *type, false);
		}
		rule = rule_of(types, whole, false);
		if (rule)
			return rule;
		*type = argument_of(whole);
		rule = rule_of(types, whole, true);
		if (rule)
			return rule;
		at += size + 2;
	}
	return NULL;
}

/* Names of the symbol table have "int ()" for the "int()" of debug information. */
static void remove_gaps(char *type)
{
	size_t n = 0;

	for (size_t i = 0; type[i]; i++)
		if (strncmp(type + i, " (", 2) || !strncmp(type + i + 1, "(anonymous", 10))
			type[n++] = type[i];
	type[n] = '\0';
}

static int type_of_function(struct block_types *types, __u32 id, const struct function_type **out)
{
	struct function_type *function = &types->functions[id - 1];
	const struct type_rule *rule;
	struct part type = { 0 };

	*out = function;
	if (function->is_known)
		return 0;
	rule = find_type(types, types->profile->functions[id - 1].name, &type);
	if (rule && type.size) {
		function->text = strndup(type.text, type.size);
		if (!function->text)
			return -ENOMEM;
		remove_gaps(function->text);
		function->is_sure = rule->is_sure;
		function->has_parameters = has_parameters(function->text);
	}
	function->is_known = true;
	return 0;
}

int block_types__of_stack(struct block_types *types, const struct block_type_frame *frames,
			  size_t n, const char **type)
{
	const struct function_type *found = NULL, *function;

	for (size_t i = 0; i < n; i++) {
		int err = frames[i].function
				  ? type_of_function(types, frames[i].function, &function)
				  : 0;

		if (err)
			return err;
		if (!frames[i].function || !function->text)
			continue;
		/* Code of the program may be inlined there unseen. */
		if (!frames[i].has_lines && !function->is_sure)
			break;
		if (found && strcmp(found->text, function->text) != 0 &&
		    !keeps_contents_in(function->text, found->text))
			break;
		found = function;
	}
	*type = found && !found->has_parameters ? found->text : NULL;
	return 0;
}
