// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads data/types, and asks the functions of a stack, the innermost first, for the type of its blocks. */
#include "block_type.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "profile.h"
#include "swift_type.h"
#include "text.h"
#include "types_data.h"
#include "wrappers.h"

struct type_rule {
	const char *pattern; /* within the text */
	bool of_argument; /* the type is the first template argument of the function; else its class */
	bool is_sure;
	bool ends; /* it calls code of the program */
};

/* A function, and the type that it says of the blocks that it allocates. */
struct function_type {
	char *text;	     /* NULL: nothing */
	bool has_parameters; /* its arguments are not known */
	bool is_sure;
	bool is_wrapper;    /* it only asks for memory */
	bool ends;	    /* it is the program's, or calls that */
	bool makes_objects; /* it makes Swift's objects, of a class that its caller says */
	bool is_of_object; /* the text is the class of the object that it has such a one make, and of nothing else */
	bool is_known;
};

struct block_types {
	const struct profile *profile;
	struct wrappers *wrappers;	 /* the built-in list: users' own do not change types */
	struct function_type *functions; /* by id - 1; filled when they are asked for */
	char *text;			 /* of the rules */
	struct type_rule *rules;
	size_t n, room;
};

static int add_rule(struct block_types *types, char *line)
{
	struct type_rule rule = { .of_argument = *line == '=',
				  .is_sure = *line == '+',
				  .ends = *line == '!' };

	rule.pattern = line + (rule.of_argument || rule.is_sure || rule.ends);
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
	if (!err)
		err = wrappers__load_builtin(&types->wrappers);
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
	wrappers__free(types->wrappers);
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

/* Finds the class within "<alloc::vec::Vec<u8> as core::clone::Clone>", of which @size is the size, and the trait, if there
 * is one. */
static struct part implementor_of(const char *name, size_t size, struct part *trait)
{
	struct part part = { name + 1, size - 2 };
	size_t depth = 0;

	*trait = (struct part){ 0 };
	for (size_t i = 1; i + 1 < size; i++) {
		depth += is_opening(name[i]);
		depth -= depth && is_closing(name, i);
		if (depth || strncmp(name + i, " as ", 4) != 0)
			continue;
		*trait = (struct part){ name + i + 4, size - 1 - (i + 4) };
		part.size = i - 1;
		break;
	}
	return part;
}

/* Returns whether the trait is one of Rust's libraries: functions of other traits are the program's, whatever implements
 * them. */
static bool is_library_trait(struct part trait)
{
	static const char *const crates[] = { "alloc::", "core::", "std::", "hashbrown::", "<" };

	for (size_t i = 0; i < ARRAY_SIZE(crates); i++)
		if (trait.size >= strlen(crates[i]) &&
		    !strncmp(trait.text, crates[i], strlen(crates[i])))
			return true;
	return !trait.size;
}

/* Returns the rule of a class or a function; NULL: none has it. */
static const struct type_rule *rule_of(const struct block_types *types, struct part part,
				       bool of_argument)
{
	_cleanup_(free_ptr) char *text = strndup(part.text, part.size);

	for (size_t i = 0; text && i < types->n; i++)
		if (types->rules[i].of_argument == of_argument && !types->rules[i].ends &&
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
		if (isupper(at[0]) && strchr("<, &[(", at[-1]) && strchr(">,]);", at[1]))
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
		{ "alloc::boxed::Box<alloc::rc::RcBox<*", "alloc::rc::Rc<*" },
		{ "alloc::boxed::Box<alloc::rc::RcInner<*", "alloc::rc::Rc<*" },
		{ "alloc::boxed::Box<alloc::sync::ArcInner<*", "alloc::sync::Arc<*" },
		{ "alloc::boxed::Box<alloc::collections::btree::node::*",
		  "alloc::collections::btree::*" },
		{ "alloc::boxed::Box<alloc::collections::linked_list::Node<*",
		  "alloc::collections::linked_list::*" },
		{ "hashbrown::*", "std::collections::*" },
		{ "hashbrown::map::*", "hashbrown::set::*" },
		{ "alloc::collections::btree::map::*", "alloc::collections::btree::set::*" },
		{ "std::collections::hash::map::*", "std::collections::hash::set::*" },
	};

	const char *of_inner = strchr(inner, '<'), *of_outer = strchr(outer, '<');

	/* A heap of vectors is not one of these. */
	if (!strncmp(inner, "alloc::vec::", 12) && of_outer &&
	    strcmp(of_inner ?: "", of_outer) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (text__matches(pairs[i].inner, inner) && text__matches(pairs[i].outer, outer))
			return true;
	return false;
}

/* Names with more parts are no names of such functions. */
#define MOST_PARTS 24

/* Finds the rule and the type that the scoped @name says: the outermost scope with a rule decides. *@is_own: it is a function
 * of the program's, and *@is_template: it has template arguments of its own. */
static const struct type_rule *find_type(const struct block_types *types, const char *name,
					 struct part *type, bool *is_own, bool *is_template)
{
	size_t end = strlen(name), at = 0;

	for (int n = 0; at < end && n < MOST_PARTS; n++) {
		size_t size = part_size(name, at, end);
		struct part whole = { name, at + size }, trait = { 0 };
		const struct type_rule *rule;

		*type = whole;
		if (!at && *name == '<') {
			*type = implementor_of(name, size, &trait);
			*is_own = !is_library_trait(trait);
		}
		*is_template = strchr(name + whole.size, '<');
		rule = rule_of(types, *type, false);
		if (rule || trait.size)
			return rule;
		*type = argument_of(whole);
		rule = rule_of(types, whole, true);
		if (rule)
			return rule;
		at += size + 2;
	}
	return NULL;
}

static bool ends_search(const struct block_types *types, const char *name)
{
	for (size_t i = 0; i < types->n; i++)
		if (types->rules[i].ends && text__matches(types->rules[i].pattern, name))
			return true;
	return false;
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

/* Does what the function's names say of a class of Swift. */
static int type_of_swift(const struct profile_function *named, struct function_type *function)
{
	int err = swift_type__of(named->full_name, &function->text, &function->is_sure);

	if (err || !function->text)
		return err;
	function->is_of_object = true;
	function->has_parameters = has_parameters(function->text);
	function->ends = false;
	return 0;
}

static int type_of_function(struct block_types *types, __u32 id, const struct function_type **out)
{
	struct function_type *function = &types->functions[id - 1];
	const struct profile_function *named = &types->profile->functions[id - 1];
	const char *name = named->name;
	bool is_own = false, is_template = false;
	const struct type_rule *rule;
	struct part type = { 0 };

	*out = function;
	if (function->is_known)
		return 0;
	function->is_wrapper = wrappers__hides(types->wrappers, name, NULL);
	rule = find_type(types, name, &type, &is_own, &is_template);
	function->ends = is_own || ends_search(types, name) ||
			 (!function->is_wrapper && !wrappers__folds(types->wrappers, name, NULL));
	if (rule && type.size && !function->ends) {
		function->text = strndup(type.text, type.size);
		if (!function->text)
			return -ENOMEM;
		remove_gaps(function->text);
		function->is_sure = rule->is_sure && !is_template;
		function->has_parameters = has_parameters(function->text);
	}
	function->makes_objects = swift_type__makes_objects(name);
	function->is_known = true;
	return swift_type__is_swift(named->symbol) ? type_of_swift(named, function) : 0;
}

/* The search in a stack, and the function that has said the type so far. */
struct type_search {
	const struct function_type *found;
	bool is_over;
	bool makes_object; /* the last function makes objects of Swift */
};

static int ask_function(struct block_types *types, struct type_search *search, __u32 id,
			bool has_lines)
{
	const struct function_type *function = NULL;
	int err = id ? type_of_function(types, id, &function) : 0;
	bool makes_object = search->makes_object;

	search->makes_object = function && function->makes_objects;
	/* Code of the program may be inlined, unseen, where there are no lines. */
	search->is_over = err || !function || function->ends ||
			  (!has_lines && !function->is_wrapper && !function->is_sure) ||
			  (function->is_of_object && !makes_object);
	if (search->is_over || !function->text)
		return err;
	if (search->found && strcmp(search->found->text, function->text) != 0 &&
	    !keeps_contents_in(function->text, search->found->text))
		search->is_over = true;
	else
		search->found = function;
	return 0;
}

/* Returns whether the frame is of a C++ library, into which no code of the program is inlined. */
static bool is_of_library(const struct profile *profile, const struct profile_frame *frame)
{
	const char *name =
		frame->module ? profile_module__basename(&profile->modules[frame->module - 1]) : "";

	return !strncmp(name, "libstdc++.so", 12) || !strncmp(name, "libc++.so", 9);
}

int block_types__of_stack(struct block_types *types, const struct profile_stack *stack,
			  const char **type)
{
	const struct profile *profile = types->profile;
	struct type_search search = { 0 };
	int err = 0;

	for (__u32 i = 0; i < stack->n_frames && !search.is_over && !err; i++) {
		const struct profile_frame *frame = &profile->frames[stack->frames[i] - 1];
		bool is_library = is_of_library(profile, frame);

		search.is_over = !frame->n_lines;
		for (__u32 j = 0; j < frame->n_lines && !search.is_over && !err; j++)
			err = ask_function(types, &search, frame->lines[j].function,
					   frame->lines[j].file || is_library);
	}
	if (err)
		return err;
	*type = search.found && !search.found->has_parameters ? search.found->text : NULL;
	return 0;
}
