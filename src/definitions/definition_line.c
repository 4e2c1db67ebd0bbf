// SPDX-License-Identifier: GPL-3.0-or-later
#include "definition_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "definitions.h"

/* Highest argument number of functions, whose arguments are in registers, and of USDT probes. */
#define MAX_ARGUMENT	  5
#define MAX_USDT_ARGUMENT 11
/* Maximum of a constant size. */
#define MAX_SIZE 0xffffffffUL
/* Maximum numbers of functions and of file patterns per definition. */
#define MAX_FUNCTIONS 128
#define MAX_MODULES   32

static const char blanks[] = " \t\r";
static const char identifier[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$";

/* The rest of a line. */
struct cursor {
	const char *at;
	const char *where;
	struct error *error;
	bool is_usdt; /* the line describes a USDT probe */
};

static void cursor__skip(struct cursor *cursor)
{
	cursor->at += strspn(cursor->at, blanks);
}

/* Skips @text if it comes next. */
static bool cursor__take(struct cursor *cursor, const char *text)
{
	cursor__skip(cursor);
	if (strncmp(cursor->at, text, strlen(text)) != 0)
		return false;
	cursor->at += strlen(text);
	return true;
}

static size_t cursor__take_word(struct cursor *cursor, const char **word)
{
	size_t len;

	cursor__skip(cursor);
	*word = cursor->at;
	len = strspn(cursor->at, identifier);
	cursor->at += len;
	return len;
}

static bool word__is(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && !strncmp(word, text, len);
}

/* The place of a value: an argument, the memory to which it points, or the return value. */
struct value_location {
	__u8 argument; /* number of the argument, from 1; 0: the return value */
	bool is_behind;
};

/* Parses "arg0". */
static bool read_argument(const struct cursor *cursor, const char *word, size_t len,
			  struct value_location *location)
{
	unsigned int most = cursor->is_usdt ? MAX_USDT_ARGUMENT : MAX_ARGUMENT, number = 0;

	if (len < 4 || len > 5 || strncmp(word, "arg", 3) != 0)
		return false;
	for (size_t i = 3; i < len; i++) {
		if (word[i] < '0' || word[i] > '9')
			return false;
		number = number * 10 + word[i] - '0';
	}
	if (number > most)
		return false;
	location->argument = number + 1;
	return true;
}

static int parse_location(struct cursor *cursor, struct value_location *location)
{
	bool is_behind = cursor__take(cursor, "*");
	const char *word;
	size_t len = cursor__take_word(cursor, &word);

	if (cursor->is_usdt && (is_behind || word__is(word, len, "ret")))
		return error__set(cursor->error, -EINVAL,
				  "%s: '%s%.*s' is not available at a USDT probe; its arguments "
				  "are arg0 (the first) to arg%d",
				  cursor->where, is_behind ? "*" : "", (int)len, word,
				  MAX_USDT_ARGUMENT);
	if (word__is(word, len, "ret") || word__is(word, len, "retval")) {
		if (is_behind)
			return error__set(cursor->error, -EINVAL,
					  "%s: '*ret' cannot be read; take ret", cursor->where);
		*location = (struct value_location){ 0 };
		return 0;
	}
	location->is_behind = is_behind;
	if (read_argument(cursor, word, len, location))
		return 0;
	return error__set(cursor->error, -EINVAL,
			  "%s: '%.*s' is no value; arguments are arg0 (the first) to "
			  "arg%d, or *arg0 for what it points to, and ret is what is returned",
			  cursor->where, (int)(len ? len : strcspn(word, ",)")), word,
			  cursor->is_usdt ? MAX_USDT_ARGUMENT : MAX_ARGUMENT);
}

static int parse_argument(struct cursor *cursor, struct value_location *location)
{
	int err = parse_location(cursor, location);

	if (!err && !location->argument)
		err = error__set(cursor->error, -EINVAL,
				 "%s: ret is not known when the function is called; it can only "
				 "stand behind ->",
				 cursor->where);
	return err;
}

static void set_size(struct interface_function *interface, const struct value_location *location)
{
	interface->size = location->argument;
	if (location->is_behind)
		interface->behind |= AP_BEHIND_SIZE;
}

static bool has_size(const struct interface_function *interface)
{
	return interface->size || interface->size_bytes;
}

static int set_count(struct cursor *cursor, struct interface_function *interface,
		     const struct value_location *location)
{
	if (interface->count)
		return error__set(cursor->error, -EINVAL,
				  "%s: a size is a product of two values at the most",
				  cursor->where);
	interface->count = location->argument;
	if (location->is_behind)
		interface->behind |= AP_BEHIND_COUNT;
	return 0;
}

/* Parses "48". */
static int parse_number(struct cursor *cursor, __u32 *number)
{
	const char *word;
	size_t len = cursor__take_word(cursor, &word);
	unsigned long value = 0;

	for (size_t i = 0; i < len && word[i] >= '0' && word[i] <= '9' && value <= MAX_SIZE; i++)
		value = value * 10 + word[i] - '0';
	if (len != strspn(word, "0123456789") || !value || value > MAX_SIZE)
		return error__set(cursor->error, -EINVAL,
				  "%s: '%.*s' is no size; a number is from 1 to %lu", cursor->where,
				  (int)len, word, MAX_SIZE);
	*number = value;
	return 0;
}

/* Adds a number: a constant is the size, and an argument beside it is the count, in any order. */
static int set_number(struct cursor *cursor, struct interface_function *interface)
{
	struct value_location location = { interface->size, interface->behind & AP_BEHIND_SIZE };
	__u32 number = 0;
	int err = parse_number(cursor, &number);

	if (err)
		return err;
	if (interface->size_bytes)
		return error__set(cursor->error, -EINVAL, "%s: a size has one number at the most",
				  cursor->where);
	if (interface->size) {
		interface->size = 0;
		interface->behind &= ~AP_BEHIND_SIZE;
		err = set_count(cursor, interface, &location);
	}
	interface->size_bytes = number;
	return err;
}

static int parse_factor(struct cursor *cursor, struct interface_function *interface)
{
	struct value_location location;
	int err;

	cursor__skip(cursor);
	if (*cursor->at >= '0' && *cursor->at <= '9')
		return set_number(cursor, interface);
	err = parse_argument(cursor, &location);
	if (err)
		return err;
	if (has_size(interface))
		return set_count(cursor, interface, &location);
	set_size(interface, &location);
	return 0;
}

static int parse_size(struct cursor *cursor, struct interface_function *interface)
{
	int err;

	do
		err = parse_factor(cursor, interface);
	while (!err && cursor__take(cursor, "*"));
	return err;
}

/* Parses "size=arg0*arg1" or "ptr=arg0". */
static int parse_role(struct cursor *cursor, struct interface_function *interface)
{
	const char *word;
	size_t len = cursor__take_word(cursor, &word);
	struct value_location location;
	int err;

	if (!cursor__take(cursor, "="))
		return error__set(cursor->error, -EINVAL,
				  "%s: '%.*s' describes no argument; it has to be size=, "
				  "count=, align=, ptr= or weight= and a value such as arg0",
				  cursor->where, (int)strcspn(word, ")"), word);
	if (word__is(word, len, "size") && !has_size(interface))
		return parse_size(cursor, interface);
	err = parse_argument(cursor, &location);
	if (err || word__is(word, len, "align"))
		return err;
	if (word__is(word, len, "count"))
		return set_count(cursor, interface, &location);
	if (word__is(word, len, "ptr") && !interface->pointer) {
		interface->pointer = location.argument;
		if (location.is_behind)
			interface->behind |= AP_BEHIND_POINTER;
		return 0;
	}
	if (word__is(word, len, "weight") && !interface->weight) {
		interface->weight = location.argument;
		return 0;
	}
	return error__set(cursor->error, -EINVAL,
			  "%s: '%.*s' is unknown, or given twice; a function takes size, "
			  "count, align and ptr, a USDT probe also weight",
			  cursor->where, (int)len, word);
}

static int parse_result(struct cursor *cursor, enum ap_defined_kind kind,
			struct interface_function *interface)
{
	struct value_location location;
	int err = parse_location(cursor, &location);

	if (err)
		return err;
	if (kind == AP_DEFINED_FREE)
		return error__set(cursor->error, -EINVAL,
				  "%s: a function that frees returns no block; omit ->",
				  cursor->where);
	if (cursor->is_usdt) {
		interface->block = location.argument;
		return 0;
	}
	if (!location.argument)
		return 0;
	if (kind != AP_DEFINED_ALLOC || !location.is_behind || interface->pointer)
		return error__set(cursor->error, -EINVAL,
				  "%s: a new block is in ret, or of a function that takes none, "
				  "in what an argument points to (*arg0)",
				  cursor->where);
	interface->pointer = location.argument;
	interface->result = AP_RESULT_AT_POINTER;
	return 0;
}

static int check_function(struct cursor *cursor, enum ap_defined_kind kind,
			  const struct interface_function *interface)
{
	if (kind != AP_DEFINED_ALLOC && !interface->pointer)
		return error__set(cursor->error, -EINVAL,
				  "%s: %s needs the block that it is given: ptr=arg0, for example",
				  cursor->where, defined_kind__name(kind));
	if (kind == AP_DEFINED_FREE && (has_size(interface) || interface->count))
		return error__set(cursor->error, -EINVAL,
				  "%s: what is freed is known by its ptr; omit its size",
				  cursor->where);
	if (kind == AP_DEFINED_REALLOC && cursor->is_usdt && !interface->block)
		return error__set(cursor->error, -EINVAL,
				  "%s: realloc of a USDT probe needs the new block: ->arg2, for "
				  "example",
				  cursor->where);
	if (kind == AP_DEFINED_ALLOC && interface->pointer && !interface->result)
		return error__set(cursor->error, -EINVAL,
				  "%s: a function that is given a block and returns one is no "
				  "alloc but a realloc",
				  cursor->where);
	if (interface->weight && !cursor->is_usdt)
		return error__set(cursor->error, -EINVAL,
				  "%s: weight= is for USDT probes (provider:name), by which a "
				  "program tells of its own samples",
				  cursor->where);
	if (interface->weight && (kind == AP_DEFINED_FREE || !has_size(interface)))
		return error__set(cursor->error, -EINVAL,
				  "%s: weight= needs size= as well, and is for alloc and realloc",
				  cursor->where);
	if (interface->count && !has_size(interface))
		return error__set(cursor->error, -EINVAL, "%s: count= needs size= as well",
				  cursor->where);
	return 0;
}

/* Takes a name such as "pool_get" or, of a USDT probe, "pool:get". Returns its length. */
static size_t take_name(struct cursor *cursor, const char **name)
{
	const char *probe;
	size_t len = cursor__take_word(cursor, name);

	if (!len || *cursor->at != ':')
		return len;
	cursor->at++;
	cursor->is_usdt = true;
	return cursor__take_word(cursor, &probe) ? (size_t)(cursor->at - *name) : 0;
}

/* Checks that a definition has only functions or only USDT probes, since these are found in
 * different ways, and either is an allocator's or only counts. */
static int check_kind(const struct definition *definition, bool only_counts,
		      const struct cursor *cursor)
{
	if (definition->n_functions && definition__only_counts(definition) != only_counts)
		return error__set(
			cursor->error, -EINVAL,
			"%s: definition '%s' has functions of an allocator, and such as are only "
			"counted; define two definitions",
			cursor->where, definition->name);
	if (!definition->n_functions || definition->is_usdt == cursor->is_usdt)
		return 0;
	return error__set(
		cursor->error, -EINVAL,
		"%s: definition '%s' has functions and USDT probes (provider:name); define two "
		"definitions",
		cursor->where, definition->name);
}

/* Adds a function, whose name has @len bytes. */
static int add_function(struct definition *definition, const char *name, size_t len,
			struct interface_function *interface, const struct cursor *cursor)
{
	struct definition_function *grown;
	enum interface_family family;
	char *copy = strndup(name, len);
	int err;

	if (!copy)
		return -ENOMEM;
	grown = interface__find(copy, &family) || definition__find(definition, copy) ||
				definition->n_functions == MAX_FUNCTIONS
			? NULL
			: reallocarray(definition->functions, definition->n_functions + 1,
				       sizeof(*grown));
	if (!grown) {
		err = error__set(cursor->error, -EINVAL,
				 "%s: %s is known already, or is one too many", cursor->where,
				 copy);
		free(copy);
		return err;
	}
	definition->functions = grown;
	definition->is_usdt = cursor->is_usdt;
	interface->name = copy;
	grown[definition->n_functions++] =
		(struct definition_function){ .name = copy, .interface = *interface };
	return 0;
}

/* Parses "pool_get(size=arg0) -> ret". */
static int parse_function(struct definition *definition, enum ap_defined_kind kind,
			  struct cursor *cursor)
{
	struct interface_function interface = { .function = definition__function(definition->index,
										 kind) };
	const char *name;
	size_t len = take_name(cursor, &name);
	int err;

	if (!len || !cursor__take(cursor, "("))
		return error__set(cursor->error, -EINVAL,
				  "%s: '%s' is no function; it has to be such as "
				  "pool_get(size=arg0)",
				  cursor->where, name);
	err = check_kind(definition, false, cursor);
	if (err)
		return err;
	if (!cursor__take(cursor, ")")) {
		do
			err = parse_role(cursor, &interface);
		while (!err && cursor__take(cursor, ","));
		if (!err && !cursor__take(cursor, ")"))
			err = error__set(cursor->error, -EINVAL, "%s: '%s' should be ',' or ')'",
					 cursor->where, cursor->at);
	}
	if (!err && cursor__take(cursor, "->"))
		err = parse_result(cursor, kind, &interface);
	cursor__skip(cursor);
	if (!err && *cursor->at)
		err = error__set(cursor->error, -EINVAL, "%s: unexpected '%s' at the end",
				 cursor->where, cursor->at);
	if (!err)
		err = check_function(cursor, kind, &interface);
	if (err)
		return err;
	return add_function(definition, name, len, &interface, cursor);
}

/* Parses "retain" or "retain through _retain". */
static int parse_count(struct definition *definition, struct cursor *cursor)
{
	struct interface_function interface = { .function = definition__function(definition->index,
										 0) };
	const char *name, *word = NULL;
	size_t len = take_name(cursor, &name), word_len = 0;
	int err;

	if (cursor__take(cursor, "through ")) {
		word_len = cursor__take_word(cursor, &word);
		len = cursor->is_usdt || !word_len ? 0 : len;
	}
	cursor__skip(cursor);
	if (!len || *cursor->at)
		return error__set(
			cursor->error, -EINVAL,
			"%s: '%s' is no function to count; it has to be such as pool_lock, or "
			"pool_lock through pool_hook",
			cursor->where, name);
	err = check_kind(definition, true, cursor);
	if (!err)
		err = add_function(definition, name, len, &interface, cursor);
	if (err)
		return err;
	definition->blocks = AP_ONLY_COUNTED;
	if (!word)
		return 0;
	definition->functions[definition->n_functions - 1].word = strndup(word, word_len);
	return definition->functions[definition->n_functions - 1].word ? 0 : -ENOMEM;
}

static int parse_switch(struct definition *definition, struct cursor *cursor)
{
	const char *word;
	size_t len = cursor__take_word(cursor, &word);

	cursor__skip(cursor);
	if (!len || *cursor->at || definition->switch_name)
		return error__set(cursor->error, -EINVAL,
				  "%s: switch takes the name of one variable", cursor->where);
	definition->switch_name = strndup(word, len);
	return definition->switch_name ? 0 : -ENOMEM;
}

/* Parses "PyMem_GetAllocator(2)". */
static int parse_domain(struct definition *definition, struct cursor *cursor)
{
	const char *word, *digits = NULL;
	size_t len = cursor__take_word(cursor, &word), n = 0;

	if (cursor__take(cursor, "("))
		n = cursor__take_word(cursor, &digits);
	if (!len || !n || n > 2 || strspn(digits, "0123456789") < n || !cursor__take(cursor, ")") ||
	    definition->domain)
		return error__set(cursor->error, -EINVAL,
				  "%s: domain takes one function that copies a table, and the "
				  "table's number, up to 99: PyMem_GetAllocator(2), for example",
				  cursor->where);
	cursor__skip(cursor);
	if (*cursor->at)
		return error__set(cursor->error, -EINVAL, "%s: unexpected '%s' at the end",
				  cursor->where, cursor->at);
	for (size_t i = 0; i < n; i++)
		definition->domain_number = definition->domain_number * 10 + digits[i] - '0';
	definition->domain = strndup(word, len);
	return definition->domain ? 0 : -ENOMEM;
}

int definition__add_module(struct definition *definition, const char *module)
{
	char **grown = reallocarray(definition->modules, definition->n_modules + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	definition->modules = grown;
	grown[definition->n_modules] = strdup(module);
	if (!grown[definition->n_modules])
		return -ENOMEM;
	definition->n_modules++;
	return 0;
}

static int parse_modules(struct definition *definition, char *value, struct cursor *cursor)
{
	char *word;
	int err = 0;

	while (!err && (word = strsep(&value, blanks))) {
		if (!*word)
			continue;
		if (definition->n_modules == MAX_MODULES)
			return error__set(cursor->error, -EINVAL, "%s: %d files at the most",
					  cursor->where, MAX_MODULES);
		err = definition__add_module(definition, word);
	}
	return err;
}

/* Returns the index of @value among @words. */
static int choose(const char *key, const char *value, const char *const *words,
		  const struct cursor *cursor)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], value))
			return i;
	return error__set(cursor->error, -EINVAL, "%s: %s = '%s' is not known; it takes %s, %s%s%s",
			  cursor->where, key, value, words[0], words[1], words[2] ? ", " : "",
			  words[2] ? words[2] : "");
}

static int parse_setting(struct definition *definition, const char *key, const char *value,
			 const struct cursor *cursor)
{
	static const char *const nestings[] = { "outermost", "beside", NULL };
	static const char *const returns[] = { "instructions", "probes", NULL };
	static const char *const blocks[] = { "own", "malloc", "none", NULL };
	const __u8 block_values[] = { definition->index + 1, AP_BLOCKS_OF_MALLOC, AP_NO_BLOCKS };
	int choice;

	if (!strcmp(key, "nesting")) {
		choice = choose(key, value, nestings, cursor);
		if (choice >= 0)
			definition->nesting = choice ? AP_NESTING_BESIDE : AP_NESTING_OUTERMOST;
	} else if (!strcmp(key, "returns")) {
		choice = choose(key, value, returns, cursor);
		if (choice >= 0)
			definition->returns_probed = choice;
	} else if (!strcmp(key, "blocks") && definition__only_counts(definition)) {
		choice = error__set(cursor->error, -EINVAL,
				    "%s: a definition that only counts has no blocks",
				    cursor->where);
	} else if (!strcmp(key, "blocks")) {
		choice = choose(key, value, blocks, cursor);
		if (choice >= 0)
			definition->blocks = block_values[choice];
	} else {
		choice = error__set(cursor->error, -EINVAL,
				    "%s: '%s' is not known; it takes alloc, realloc, free, count, "
				    "modules, nesting, returns, blocks, domain and switch",
				    cursor->where, key);
	}
	return choice < 0 ? choice : 0;
}

int definition__parse_line(struct definition *definition, char *line, const char *where,
			   struct error *error)
{
	struct cursor cursor = { .where = where, .error = error };
	char *equals = strchr(line, '='), *key = line, *end;

	if (!equals)
		return error__set(error, -EINVAL,
				  "%s: '%s' has no '='; it has to be such as "
				  "alloc = pool_get(size=arg0) or nesting = beside",
				  where, line);
	for (end = equals; end > key && strchr(blanks, end[-1]); end--)
		;
	*end = '\0';
	cursor.at = equals + 1 + strspn(equals + 1, blanks);
	for (int kind = 0; kind < AP_DEFINED_KINDS; kind++)
		if (!strcmp(key, defined_kind__name(kind)))
			return parse_function(definition, kind, &cursor);
	if (!strcmp(key, DEFINITION_COUNT))
		return parse_count(definition, &cursor);
	if (!strcmp(key, "switch"))
		return parse_switch(definition, &cursor);
	if (!strcmp(key, "domain"))
		return parse_domain(definition, &cursor);
	if (!strcmp(key, "modules"))
		return parse_modules(definition, equals + 1, &cursor);
	return parse_setting(definition, key, cursor.at, &cursor);
}
