// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "message.h"

#define MAX_NAMES 128
#define MAX_WORD  64

const struct argp_option options_common[] = {
	{ "help", 'h', NULL, 0, "Print this help", -1 },
	{ 0 },
};

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters must be inserted, deleted, replaced or swapped with their neighbour. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][MAX_WORD + 1];
	size_t len_a = strlen(a), len_b = strlen(b);

	if (len_a > MAX_WORD || len_b > MAX_WORD)
		return SIZE_MAX;
	for (size_t j = 0; j <= len_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= len_a; i++) {
		size_t *row = rows[i % 3], *above = rows[(i - 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			row[j] = min(above[j] + 1, row[j - 1] + 1);
			row[j] = min(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min(row[j], rows[(i - 2) % 3][j - 2] + 1);
		}
	}
	return rows[len_a % 3][len_b];
}

const char *options__nearest(const char *word, const char *const *names)
{
	const char *nearest = NULL;
	/* Up to a third of the letters may be wrong; more is another word. */
	size_t best = strlen(word) / 3 + 2;

	for (; *names; names++) {
		size_t distance = edit_distance(word, *names);

		if (distance < best) {
			best = distance;
			nearest = *names;
		}
	}
	return nearest;
}

static bool is_end(const struct argp_option *option)
{
	return !option->name && !option->key && !option->doc && !option->group;
}

/* Calls @visit with each option, and with an alias and its option, until @visit returns true. */
static bool for_each_option(const struct command *command,
			    bool (*visit)(const struct argp_option *option,
					  const struct argp_option *meaning, void *context),
			    void *context)
{
	const struct argp_option *const tables[] = { command->options, options_common };

	for (size_t i = 0; i < 2; i++) {
		const struct argp_option *meaning = tables[i];

		for (const struct argp_option *at = tables[i]; at && !is_end(at); at++) {
			if (!(at->flags & OPTION_ALIAS))
				meaning = at;
			if (at->flags & OPTION_DOC || (!at->name && !at->key))
				continue;
			if (visit(at, meaning, context))
				return true;
		}
	}
	return false;
}

struct search {
	const char *name; /* long option; not NUL-terminated */
	size_t len;
	int key; /* short option */
	const struct argp_option *found;
	bool exact, ambiguous;
	const char *names[MAX_NAMES + 1];
	size_t n_names;
};

static bool visit_long(const struct argp_option *option, const struct argp_option *meaning,
		       void *context)
{
	struct search *search = context;

	if (!option->name)
		return false;
	if (search->n_names < MAX_NAMES)
		search->names[search->n_names++] = option->name;
	if (strncmp(option->name, search->name, search->len))
		return false;
	if (!option->name[search->len]) {
		search->found = meaning;
		search->exact = true;
		return true;
	}
	if (search->found && search->found != meaning)
		search->ambiguous = true;
	search->found = meaning;
	return false;
}

static bool visit_short(const struct argp_option *option, const struct argp_option *meaning,
			void *context)
{
	struct search *search = context;

	if (option->key != search->key)
		return false;
	search->found = meaning;
	return true;
}

static bool is_help(const struct argp_option *option)
{
	return option == options_common;
}

/* Checks the long option @word, without its dashes. @next is the following word, or NULL. */
static int check_long(const struct command *command, const char *word, const char *next,
		      bool *takes_next, struct error *error)
{
	struct search search = { .name = word, .len = strcspn(word, "=") };
	const char *nearest;
	char name[MAX_WORD + 1];

	for_each_option(command, visit_long, &search);
	snprintf(name, sizeof(name), "%.*s", (int)min(search.len, MAX_WORD), word);
	if (search.ambiguous && !search.exact)
		return error__set(error, -EINVAL,
				  "option '--%s' is ambiguous; write it out, `allocprof %s --help` "
				  "lists all",
				  name, command->name);
	if (!search.found) {
		nearest = options__nearest(name, search.names);
		if (nearest)
			return error__set(error, -EINVAL,
					  "unknown option '--%s'; did you mean '--%s'?", name,
					  nearest);
		return error__set(error, -EINVAL,
				  "unknown option '--%s'; `allocprof %s --help` lists all", name,
				  command->name);
	}
	if (!search.found->arg && word[search.len])
		return error__set(error, -EINVAL, "option '--%s' takes no value; leave '%.64s' out",
				  name, word + search.len);
	if (search.found->arg && !(search.found->flags & OPTION_ARG_OPTIONAL) &&
	    !word[search.len]) {
		if (!next)
			return error__set(error, -EINVAL,
					  "option '--%s' needs a value; write --%s=%s", name, name,
					  search.found->arg);
		*takes_next = true;
	}
	return is_help(search.found);
}

/* Checks the short options in @word, without the dash. */
static int check_short(const struct command *command, const char *word, const char *next,
		       bool *takes_next, struct error *error)
{
	for (; *word; word++) {
		struct search search = { .key = (unsigned char)*word };

		for_each_option(command, visit_short, &search);
		if (!search.found)
			return error__set(error, -EINVAL,
					  "unknown option '-%c'; `allocprof %s --help` lists all",
					  isprint((unsigned char)*word) ? *word : '?',
					  command->name);
		if (is_help(search.found))
			return 1;
		if (!search.found->arg)
			continue;
		if (search.found->flags & OPTION_ARG_OPTIONAL || word[1])
			return 0;
		if (!next)
			return error__set(error, -EINVAL,
					  "option '-%c' needs a value; write -%c %s", *word, *word,
					  search.found->arg);
		*takes_next = true;
	}
	return 0;
}

int options__check(const struct command *command, int argc, char **argv, struct error *error)
{
	bool in_order = command->launches || getenv("POSIXLY_CORRECT");

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
		bool takes_next = false;
		int status;

		if (!strcmp(word, "--"))
			return 0;
		if (*word != '-' || !word[1]) {
			if (in_order)
				return 0;
			continue;
		}
		if (word[1] == '-')
			status = check_long(command, word + 2, next, &takes_next, error);
		else
			status = check_short(command, word + 1, next, &takes_next, error);
		if (status)
			return status;
		i += takes_next;
	}
	return 0;
}

static struct argp command_argp(const struct command *command, const struct argp_child *children,
				argp_parser_t parser)
{
	return (struct argp){
		.options = command->options,
		.parser = parser,
		.args_doc = command->args_doc,
		.doc = command->doc,
		.children = children,
	};
}

static const struct argp common_argp = { .options = options_common };
static const struct argp_child common_children[] = {
	{ &common_argp, 0, NULL, 0 },
	{ 0 },
};

void options__print_help(const struct command *command)
{
	struct argp argp = command_argp(command, common_children, NULL);
	char name[MAX_WORD];

	snprintf(name, sizeof(name), "allocprof %s", command->name);
	argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_DOC | ARGP_HELP_LONG, name);
}

int options__reject_argument(struct options_input *input, const char *argument)
{
	error__set(input->error, -EINVAL, "unexpected argument '%s'; leave it out", argument);
	return EINVAL;
}

int options__parse(const struct command *command, argp_parser_t parser, void *options, int argc,
		   char **argv, struct error *error)
{
	struct options_input input = { options, error };
	struct argp argp = command_argp(command, NULL, parser);
	unsigned int flags = ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_NO_EXIT;
	int err;

	err = options__check(command, argc, argv, error);
	if (err > 0)
		options__print_help(command);
	if (err)
		return err;
	if (command->launches)
		flags |= ARGP_IN_ORDER;
	error->text[0] = '\0';
	err = argp_parse(&argp, argc, argv, flags, NULL, &input);
	if (err && !error->text[0])
		error__set(error, -EINVAL,
			   "cannot make sense of the options; see `allocprof %s "
			   "--help`",
			   command->name);
	return err ? -EINVAL : 0;
}

int options__read(const struct command *command, argp_parser_t parser, void *options, int argc,
		  char **argv)
{
	struct error error = { 0 };
	int err = options__parse(command, parser, options, argc, argv, &error);

	if (err > 0)
		return EXIT_GOOD;
	if (!err)
		return OPTIONS_READ;
	message__print("%s", error.text);
	return EXIT_USAGE;
}
