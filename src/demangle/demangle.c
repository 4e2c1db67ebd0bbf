// SPDX-License-Identifier: GPL-3.0-or-later
#include "demangle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clone_suffix.h"
#include "coprocess.h"
#include "demangle_internal.h"
#include "error.h"
#include "hash_table.h"

#define COMMAND_TIMEOUT_MS 30000
#define MAX_ANSWER_SIZE	   (64UL << 20)

struct demangler {
	char *command;
	unsigned int timeout_ms;
	/* Names that have to be demangled in another process. @symbol is owned and has no clone
	 * suffix. */
	struct isolated_name *names;
	size_t n_names, names_room;
	size_t n_run;		 /* number of the first names, which have been processed */
	struct hash_table index; /* names by symbol: index + 1 */
	__u64 seed;
};

/* A symbol, split into its name and its suffixes. */
struct parts {
	char *base;	   /* owned */
	const char *clone; /* suffix, borrowed from the symbol: ".isra.0", or "" */
	size_t clone_len;
};

int demangler__new(const struct demangle_options *options, struct demangler **out,
		   struct error *error)
{
	struct demangler *demangler;

	if (options->command && !options->command[strspn(options->command, " \t\n")])
		return error__set(
			error, -EINVAL,
			"the command that is to demangle names is empty; give one such as "
			"'swift demangle --simplified'");
	demangler = calloc(1, sizeof(*demangler));
	if (!demangler)
		return -ENOMEM;
	demangler->seed = hash_seed();
	demangler->timeout_ms = options->timeout_ms ?: COMMAND_TIMEOUT_MS;
	if (options->command) {
		demangler->command = strdup(options->command);
		if (!demangler->command) {
			free(demangler);
			return -ENOMEM;
		}
	}
	*out = demangler;
	return 0;
}

void demangler__free(struct demangler *demangler)
{
	if (!demangler)
		return;
	for (size_t i = 0; i < demangler->n_names; i++) {
		free((char *)demangler->names[i].symbol);
		free(demangler->names[i].name);
		free(demangler->names[i].full_name);
	}
	free(demangler->names);
	hash_table__release(&demangler->index);
	free(demangler->command);
	free(demangler);
}

/* Splits a symbol. Returns 0 or -ENOMEM. */
static int split(const char *symbol, struct parts *parts)
{
	/*
	 * In .symtab names have versions: memcpy@@GLIBC_2.14. Swift has names that begin with '@'.
	 */
	const char *version = *symbol ? strchr(symbol + 1, '@') : NULL;
	size_t len = version ? (size_t)(version - symbol) : strnlen(symbol, DEMANGLED_SIZE);
	size_t base_len = clone_suffix__start(symbol, len);

	parts->base = strndup(symbol, base_len);
	parts->clone = symbol + base_len;
	parts->clone_len = len - base_len;
	return parts->base ? 0 : -ENOMEM;
}

/* Returns @name with the clone suffix in @format, which the caller frees; NULL if there is no
 * memory. */
static char *with_clone(const char *name, const struct parts *parts, const char *format)
{
	char *text;

	/* ".llvm." only makes a local symbol unique. */
	if (!parts->clone_len || !strncmp(parts->clone, ".llvm.", strlen(".llvm.")))
		return strdup(name);
	return asprintf(&text, format, name, (int)parts->clone_len, parts->clone) < 0 ? NULL : text;
}

static bool match_symbol(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct demangler *)owner)->names[id - 1].symbol, key);
}

static struct isolated_name *find(const struct demangler *demangler, const char *base)
{
	__u32 id = hash_table__find(&demangler->index, hash_string(demangler->seed, base),
				    match_symbol, demangler, base);

	return id ? &demangler->names[id - 1] : NULL;
}

bool demangle__looks_mangled(const char *symbol)
{
	static const char *const prefixes[] = { "_Z", "__Z", "___Z", "_R", "_T" };

	if (demangle_isolated__knows(symbol))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(symbol, prefixes[i], len) && symbol[len])
			return true;
	}
	return false;
}

/* Returns whether @base is for the worker. Names that are already listed are not sent again. */
static bool is_for_worker(const struct demangler *demangler, const char *base)
{
	return !find(demangler, base) &&
	       (demangle__looks_mangled(base) || demangle_base__is_cxx_text(base));
}

/* Returns whether the filter gets the name, which the worker could not demangle. Requests are
 * lines. */
static bool is_for_command(const struct isolated_name *name)
{
	return !name->name && demangle__looks_mangled(name->symbol) &&
	       !strpbrk(name->symbol, "\n\r");
}

static int add_base(struct demangler *demangler, char *base)
{
	int err;

	if (array__reserve(&demangler->names, &demangler->names_room, demangler->n_names + 1,
			   sizeof(*demangler->names)))
		return -ENOMEM;
	err = hash_table__insert(&demangler->index, hash_string(demangler->seed, base),
				 demangler->n_names + 1);
	if (err)
		return err;
	demangler->names[demangler->n_names++] = (struct isolated_name){ .symbol = base };
	return 0;
}

int demangler__add(struct demangler *demangler, const char *symbol)
{
	struct parts parts;
	int status = split(symbol, &parts);

	if (status)
		return status;
	if (is_for_worker(demangler, parts.base))
		return add_base(demangler, parts.base);
	free(parts.base);
	return 0;
}

static size_t count_lines(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n + (size && text[size - 1] != '\n');
}

/* Assigns the lines of @output to those of @names that have no demangled name yet. */
static int apply_answers(struct isolated_name *names, size_t n, char *output, size_t size)
{
	char *end = output + size;

	for (size_t i = 0; i < n && output < end; i++) {
		char *line = output;
		size_t len;

		if (!is_for_command(&names[i]))
			continue;
		output = memchr(line, '\n', end - line) ?: end;
		*output++ = '\0';
		len = strlen(line);
		if (!len || len >= DEMANGLED_SIZE)
			continue;
		names[i].name = strdup(line);
		names[i].full_name = strdup(line);
		if (!names[i].name || !names[i].full_name)
			return -ENOMEM;
	}
	return 0;
}

/* Sends those of @names that are still mangled to the filter. */
static int run_command(const struct demangler *demangler, struct isolated_name *names, size_t n,
		       struct error *error)
{
	struct coprocess coprocess = { .command = demangler->command,
				       .timeout_ms = demangler->timeout_ms };
	_cleanup_(free_ptr) char *input = NULL;
	_cleanup_(free_ptr) char *output = NULL;
	size_t input_size, output_size, n_lines = 0, n_answers;
	FILE *file = open_memstream(&input, &input_size);
	int err;

	if (!file)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!is_for_command(&names[i]))
			continue;
		fprintf(file, "%s\n", names[i].symbol);
		n_lines++;
	}
	if (fclose(file))
		return -ENOMEM;
	if (!n_lines)
		return 0;
	coprocess.max_output = MAX_ANSWER_SIZE;
	err = coprocess__run(&coprocess, input, input_size, &output, &output_size, error);
	if (err == -ENOMEM)
		return err;
	if (err)
		return error__wrap(error, err, "names stay as they are linked");
	n_answers = count_lines(output, output_size);
	if (n_answers != n_lines)
		return error__set(error, -EPROTO,
				  "names stay as they are linked: `%.200s` read %zu lines and "
				  "printed %zu; it has to print one for each",
				  demangler->command, n_lines, n_answers);
	return apply_answers(names, n, output, output_size);
}

int demangler__run(struct demangler *demangler, struct error *error)
{
	size_t n = demangler->n_names - demangler->n_run;
	struct isolated_name *names;
	int err;

	if (!n)
		return 0;
	names = demangler->names + demangler->n_run;
	demangler->n_run = demangler->n_names;
	err = demangle_isolated__run(names, n);
	if (!err && demangler->command)
		err = run_command(demangler, names, n, error);
	return err;
}

/* Stores both forms of @base. Returns 1, 0 if it cannot be demangled, or -ENOMEM. */
static int name_base(const struct demangler *demangler, const char *base, char **name,
		     char **full_name)
{
	const struct isolated_name *found = find(demangler, base);

	if (!found)
		return demangle_base__names(base, name, full_name);
	if (!found->name)
		return 0;
	*name = strdup(found->name);
	*full_name = strdup(found->full_name);
	if (*name && *full_name)
		return 1;
	free(*name);
	free(*full_name);
	*name = *full_name = NULL;
	return -ENOMEM;
}

int demangler__names(const struct demangler *demangler, const char *symbol, char **name,
		     char **full_name)
{
	_cleanup_(free_ptr) char *full = NULL;
	char *simple = NULL, *marked;
	struct parts parts;
	int status = split(symbol, &parts);

	if (status)
		return status;
	status = name_base(demangler, parts.base, &simple, &full);
	if (status < 0) {
		free(parts.base);
		return status;
	}
	if (status)
		marked = with_clone(full, &parts, "%s [clone %.*s]");
	else
		marked = with_clone(parts.base, &parts, "%s%.*s");
	if (status)
		free(parts.base);
	else
		simple = parts.base;
	if (!marked) {
		free(simple);
		return -ENOMEM;
	}
	*name = simple;
	*full_name = marked;
	return 0;
}
