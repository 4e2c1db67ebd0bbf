// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the words of the command line: options by tables of argp, and the numbers that they take. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
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

/* Returns how many letters must be inserted, deleted, replaced or swapped with their neighbour to
 * make @b of @a. */
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
	/* Up to a third of the letters may be wrong; if more are, it is another word. */
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

bool options__visit(const struct command *command, options_visit visit, void *context)
{
	const struct argp_option *const tables[] = { command->options, options_common };

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct argp_option *meaning = tables[i];

		for (const struct argp_option *at = tables[i]; at && !is_end(at); at++) {
			if (!(at->flags & OPTION_ALIAS))
				meaning = at;
			if ((at->name || at->key) && !(at->flags & OPTION_DOC) &&
			    visit(at, meaning, context))
				return true;
		}
	}
	return false;
}

struct search {
	const char *name; /* name of the long option; not NUL-terminated */
	size_t len;
	int key; /* letter of the short option */
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

/* A command line that is read word by word. */
struct reading {
	const struct command *command;
	char **words;  /* words that have not been read; ends with NULL */
	char *letters; /* letters of a word such as -qv that have not been read, or NULL */
	bool in_order; /* options end at the first operand */
	bool only_operands;
};

static struct reading begin_reading(const struct command *command, char **argv)
{
	return (struct reading){
		.command = command,
		.words = argv + 1,
		.in_order = command->launches || getenv("POSIXLY_CORRECT"),
	};
}

/* Reads the long option @word, without its dashes. */
static int read_long(struct reading *reading, char *word, const struct argp_option **option,
		     char **value, struct error *error)
{
	struct search search = { .name = word, .len = strcspn(word, "=") };
	/* "" for options that stand before any command */
	const char *command = reading->command->name;
	const char *nearest;
	char name[MAX_WORD + 1];

	options__visit(reading->command, visit_long, &search);
	snprintf(name, sizeof(name), "%.*s", (int)min(search.len, MAX_WORD), word);
	if (search.ambiguous && !search.exact)
		return error__set(
			error, -EINVAL,
			"option '--%s' is ambiguous; write it out, `allocprof%s%s --help` "
			"lists all",
			name, *command ? " " : "", command);
	if (!search.found) {
		nearest = options__nearest(name, search.names);
		if (nearest)
			return error__set(error, -EINVAL,
					  "unknown option '--%s'; did you mean '--%s'?", name,
					  nearest);
		return error__set(error, -EINVAL,
				  "unknown option '--%s'; `allocprof%s%s --help` lists all", name,
				  *command ? " " : "", command);
	}
	*option = search.found;
	*value = word[search.len] ? word + search.len + 1 : NULL;
	if (!search.found->arg && *value)
		return error__set(error, -EINVAL, "option '--%s' takes no value; leave '%.64s' out",
				  name, word + search.len);
	if (!search.found->arg || *value)
		return 1;
	*value = *reading->words;
	if (!*value)
		return error__set(error, -EINVAL, "option '--%s' needs a value; write --%s=%s",
				  name, name, search.found->arg);
	reading->words++;
	return 1;
}

/* Reads the next letter of a word of short options. */
static int read_letter(struct reading *reading, const struct argp_option **option, char **value,
		       struct error *error)
{
	char letter = *reading->letters++;
	struct search search = { .key = (unsigned char)letter };
	const char *command = reading->command->name;

	options__visit(reading->command, visit_short, &search);
	if (!search.found)
		return error__set(error, -EINVAL,
				  "unknown option '-%c'; `allocprof%s%s --help` lists all",
				  isprint((unsigned char)letter) ? letter : '?',
				  *command ? " " : "", command);
	*option = search.found;
	*value = NULL;
	if (!search.found->arg)
		return 1;
	*value = *reading->letters ? reading->letters : *reading->words++;
	reading->letters = NULL;
	if (!*value)
		return error__set(error, -EINVAL, "option '-%c' needs a value; write -%c %s",
				  letter, letter, search.found->arg);
	return 1;
}

/*
 * Reads the next option and its value (NULL: none), or an operand, for which *@option is NULL.
 * Returns 1, 0 at the end, or -EINVAL with @error set.
 */
static int read_next(struct reading *reading, const struct argp_option **option, char **value,
		     struct error *error)
{
	char *word;

	if (reading->letters && *reading->letters)
		return read_letter(reading, option, value, error);
	word = *reading->words;
	if (!word)
		return 0;
	reading->words++;
	if (!reading->only_operands && !strcmp(word, "--")) {
		reading->only_operands = true;
		return read_next(reading, option, value, error);
	}
	if (reading->only_operands || *word != '-' || !word[1]) {
		reading->only_operands |= reading->in_order;
		*option = NULL;
		*value = word;
		return 1;
	}
	if (word[1] == '-')
		return read_long(reading, word + 2, option, value, error);
	reading->letters = word + 1;
	return read_letter(reading, option, value, error);
}

int options__check(const struct command *command, char **argv, struct error *error)
{
	struct reading reading = begin_reading(command, argv);
	const struct argp_option *option;
	char *value;
	int status;

	while ((status = read_next(&reading, &option, &value, error)) > 0)
		if (option && is_help(option))
			return 1;
	return status;
}

void options__print_help(const struct command *command)
{
	static const struct argp common = { .options = options_common };
	static const struct argp_child children[] = { { &common, 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.options = command->options,
		.args_doc = command->args_doc,
		.doc = command->doc,
		.children = children,
	};
	char name[MAX_WORD];

	snprintf(name, sizeof(name), "allocprof %s", command->name);
	argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_DOC | ARGP_HELP_LONG, name);
}

int options__reject_operand(const char *operand, struct error *error)
{
	return error__set(error, -EINVAL, "unexpected argument '%s'; leave it out", operand);
}

/* Passes the operands to the parser. A command that launches another gets only the first call,
 * with all operands behind it. */
static int take_operands(const struct command *command, options_parser parser,
			 struct options_input *input)
{
	int err = 0;

	for (; *input->operands && !err; input->operands++) {
		err = parser(OPTIONS_OPERAND, *input->operands, input);
		if (command->launches)
			break;
	}
	return err;
}

int options__parse(const struct command *command, options_parser parser, void *options, char **argv,
		   struct error *error)
{
	struct reading reading = begin_reading(command, argv);
	/* Operands move to the beginning of @argv, over words that have been read. */
	char **operands = argv + 1, **last = operands;
	struct options_input input = { options, operands, error };
	const struct argp_option *option;
	char *value;
	int err;

	/* Check all words first, so that no value has an effect if one is wrong; --help comes
	 * before everything else. */
	err = options__check(command, argv, error);
	if (err > 0)
		options__print_help(command);
	if (err)
		return err;
	while ((err = read_next(&reading, &option, &value, error)) > 0) {
		if (!option)
			*last++ = value;
		else if (parser(option->key, value, &input))
			return -EINVAL;
	}
	*last = NULL;
	err = take_operands(command, parser, &input);
	if (!err)
		err = parser(OPTIONS_END, NULL, &input);
	return err && err != OPTIONS_UNKNOWN ? -EINVAL : 0;
}

int options__read(const struct command *command, options_parser parser, void *options, char **argv)
{
	struct error error = { 0 };
	int err = options__parse(command, parser, options, argv, &error);

	if (err > 0)
		return EXIT_GOOD;
	if (!err)
		return OPTIONS_READ;
	message__error(&error, err);
	return EXIT_USAGE;
}

struct unit {
	const char *name;
	double factor;
};

/* Parses a number from 0 to 10^18 with one of @units, a list that ends with NULL. */
static bool parse(const char *text, const struct unit *units, double *value)
{
	char *end;
	double number;

	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	number = strtod(text, &end);
	if (end == text)
		return false;
	for (; units->name; units++) {
		if (strcmp(end, units->name))
			continue;
		/* Reject NaN, and numbers that would not fit into 64 bits. */
		if (!(number >= 0) || number * units->factor > 1e18)
			return false;
		*value = number * units->factor;
		return true;
	}
	return false;
}

int number__parse_duration(const char *text, __u64 *ns, struct error *error)
{
	static const struct unit units[] = { { "", 1e9 },     { "s", 1e9 }, { "ms", 1e6 },
					     { "us", 1e3 },   { "ns", 1 },  { "m", 60e9 },
					     { "h", 3600e9 }, { NULL, 0 } };
	double value;

	if (parse(text, units, &value) && value > 0) {
		*ns = value;
		return 0;
	}
	return error__set(error, -EINVAL, "'%s' is no duration; write for example 500ms, 10s or 5m",
			  text);
}

int number__parse_size(const char *text, __u64 *bytes, struct error *error)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "k", 1024 },
		{ "K", 1024 },
		{ "M", 1024 * 1024 },
		{ "G", 1024.0 * 1024 * 1024 },
		{ "KiB", 1024 },
		{ "MiB", 1024 * 1024 },
		{ "GiB", 1024.0 * 1024 * 1024 },
		{ "kB", 1000 },
		{ "KB", 1000 },
		{ "MB", 1e6 },
		{ "GB", 1e9 },
		{ NULL, 0 },
	};
	double value;

	if (parse(text, units, &value)) {
		*bytes = value;
		return 0;
	}
	return error__set(error, -EINVAL, "'%s' is no size; write for example 64, 4K or 1MiB",
			  text);
}

int number__parse_share(const char *text, double *share, struct error *error)
{
	static const struct unit units[] = { { "%", 0.01 }, { NULL, 0 } };
	double value;

	if (parse(text, units, &value) && value <= 1) {
		*share = value;
		return 0;
	}
	return error__set(error, -EINVAL, "'%s' is no share; write for example 1%% or 98%%", text);
}

bool number__parse_between(const char *text, __u64 least, __u64 most, __u64 *value)
{
	unsigned long long number;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number < least || number > most)
		return false;
	*value = number;
	return true;
}

int number__parse_count(const char *text, __u64 *count, struct error *error)
{
	if (number__parse_between(text, 0, UINT64_MAX, count))
		return 0;
	return error__set(error, -EINVAL,
			  "'%s' is neither 0 nor a positive whole number; write for example 10",
			  text);
}

int number__parse_pid(const char *text, pid_t *pid, struct error *error)
{
	__u64 value;

	if (!number__parse_between(text, 1, INT_MAX, &value))
		return error__set(error, -EINVAL,
				  "'%s' is no process id; give one number, as ps shows it", text);
	*pid = value;
	return 0;
}
