// SPDX-License-Identifier: GPL-3.0-or-later
#include "definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "path.h"
#include "pattern.h"
#include "definition_line.h"
#include "definitions_data.h"

#define MAX_FILE_SIZE (1UL << 20)

static const char blanks[] = " \t\r";

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, blanks);
	for (len = strlen(text); len && strchr(blanks, text[len - 1]); len--)
		text[len - 1] = '\0';
	return text;
}

static int begin_definition(struct definitions *definitions, const char *name, const char *where,
			    struct error *error)
{
	struct definition *definition;
	int index;

	if (definition_names__has(&definitions->names, name))
		return error__set(error, -EINVAL,
				  "%s: '%s' is defined already; give it another name", where, name);
	index = definition_names__add(&definitions->names, name);
	if (index == -E2BIG)
		return error__set(error, -EINVAL, "%s: %d allocators at the most can be defined",
				  where, AP_MAX_DEFINITIONS);
	if (index < 0)
		return error__set(
			error, -EINVAL,
			"%s: '%s' is no name for an allocator; it takes letters, digits, '-' and "
			"'_', %d of them at the most",
			where, name, DEFINITION_NAME_MAX);
	definition = &definitions->list[definitions->n];
	*definition = (struct definition){
		.text = strdup(name),
		.index = index,
		.nesting = AP_NESTING_NONE, /* not known so far */
		.blocks = index + 1,
	};
	if (!definition->text)
		return -ENOMEM;
	definition->name = definition->text;
	definitions->n++;
	return 0;
}

/* Checks that calls which come by the table can be counted as those of the functions are. */
static int check_domain(const struct definition *definition, const char *where, struct error *error)
{
	if (definition->is_usdt || definition__only_counts(definition))
		return error__set(
			error, -EINVAL,
			"%s: definition '%s' has a domain, and no functions of an allocator", where,
			definition->name);
	if (definition->nesting == AP_NESTING_BESIDE || definition->blocks != AP_BLOCKS_OF_MALLOC)
		return error__set(
			error, -EINVAL,
			"%s: definition '%s' has a domain, beneath which nothing else counts, and whose "
			"blocks may be malloc's: it takes nesting = outermost and blocks = malloc",
			where, definition->name);
	return 0;
}

static int end_definition(struct definition *definition, const char *where, struct error *error)
{
	int err;

	if (!definition->n_functions)
		return error__set(error, -EINVAL,
				  "%s: definition '%s' has no function; it needs a line such as "
				  "alloc = pool_get(size=arg0)",
				  where, definition->name);
	err = definition->domain ? check_domain(definition, where, error) : 0;
	if (err)
		return err;
	if (definition__only_counts(definition)) {
		if (definition->nesting != AP_NESTING_NONE || definition->returns_probed)
			return error__set(
				error, -EINVAL,
				"%s: definition '%s' only counts calls, all of them: leave out "
				"nesting and returns",
				where, definition->name);
		definition->nesting = AP_NESTING_BESIDE;
		return 0;
	}
	if (definition->switch_name)
		return error__set(error, -EINVAL,
				  "%s: definition '%s' has a switch and no count line", where,
				  definition->name);
	if (definition->is_usdt && definition->nesting == AP_NESTING_OUTERMOST)
		return error__set(
			error, -EINVAL,
			"%s: definition '%s' cannot be outermost: a USDT probe has no return, "
			"so it counts beside malloc",
			where, definition->name);
	if (definition->nesting == AP_NESTING_NONE)
		definition->nesting =
			definition->is_usdt ? AP_NESTING_BESIDE : AP_NESTING_OUTERMOST;
	if (definition->nesting == AP_NESTING_BESIDE && definition->blocks == AP_BLOCKS_OF_MALLOC)
		return error__set(
			error, -EINVAL,
			"%s: definition '%s' has blocks = malloc, and counts beside malloc: "
			"each block would count twice; take nesting = outermost",
			where, definition->name);
	return 0;
}

/* Terminates the line at its newline, and drops a comment. */
static char *next_line(char *text, char **next)
{
	*next = strchr(text, '\n');
	if (*next)
		*(*next)++ = '\0';
	text = trim(text);
	if (*text == '#' || *text == ';')
		*text = '\0';
	return text;
}

static int parse_line(struct definitions *definitions, struct definition *definition, char *line,
		      const char *where, struct error *error)
{
	int err = definition__parse_line(definition, line, where, error);

	if (!err && definition__only_counts(definition))
		definition_names__count_only(&definitions->names, definition->index);
	return err;
}

/* Parses the sections of a definition; modifies @text. @path is for messages. */
static int parse_file(struct definitions *definitions, char *text, const char *path,
		      struct error *error)
{
	struct definition *definition = NULL;
	unsigned int number = 1;
	char where[300];
	int err = 0;

	for (char *next; text && !err; text = next, number++) {
		char *line = next_line(text, &next);
		size_t len = strlen(line);

		snprintf(where, sizeof(where), "line %u of %.250s", number, path);
		if (!len)
			continue;
		if (*line == '[' && line[len - 1] == ']') {
			line[len - 1] = '\0';
			if (definition)
				err = end_definition(definition, where, error);
			if (!err)
				err = begin_definition(definitions, trim(line + 1), where, error);
			definition = err ? NULL : &definitions->list[definitions->n - 1];
		} else if (!definition) {
			err = error__set(error, -EINVAL,
					 "%s: '%s' is in no section; a definition begins with a "
					 "line such as [pool]",
					 where, line);
		} else {
			err = parse_line(definitions, definition, line, where, error);
		}
	}
	if (err)
		return err;
	if (!definition)
		return error__set(error, -EINVAL,
				  "%s defines nothing; a definition begins with a line such as "
				  "[pool]",
				  path);
	return end_definition(definition, path, error);
}

static int read_text(const char *path, char **out, struct error *error)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(free_ptr) char *text = NULL;
	struct stat st;
	size_t n;
	int err;

	if (fd < 0 || fstat(fd, &st))
		return error__set(error, -errno, "cannot read the definition %s: %s", path,
				  strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error__set(error, -EINVAL, "the definition %s is no regular file", path);
	err = text_file__read(fd, MAX_FILE_SIZE + 1, &text, &n);
	if (err)
		return error__set(error, err, "cannot read the definition %s: %s", path,
				  strerror(-err));
	if (n > MAX_FILE_SIZE)
		return error__set(error, -EFBIG, "the definition %s has more than 1 MiB", path);
	if (memchr(text, '\0', n))
		return error__set(error, -EINVAL, "the definition %s is no text: it has a null",
				  path);
	*out = text;
	text = NULL;
	return 0;
}

const char *const *definitions__shipped(void)
{
	return shipped_names;
}

static int read_definition(const char *name, char **out, struct error *error)
{
	char known[512] = "";

	if (strchr(name, '/'))
		return read_text(name, out, error);
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
		size_t len = strlen(known);

		if (!strcmp(shipped[i].name, name)) {
			*out = strdup(shipped[i].text);
			return *out ? 0 : -ENOMEM;
		}
		snprintf(known + len, sizeof(known) - len, "%s, ", shipped[i].name);
	}
	return error__set(error, -ENOENT,
			  "no definition '%s' comes with allocprof; it has %s" DEFINITIONS_MAPPINGS
			  ", " DEFINITIONS_FAULTS ", and takes the path "
			  "of a file of your own with a / in it",
			  name, known);
}

/* Removes ":beside" or ":outermost" from the end of @name. */
static enum ap_nesting take_nesting(char *name)
{
	char *colon = strrchr(name, ':');
	enum ap_nesting nesting = AP_NESTING_NONE;

	if (colon && !strcmp(colon, ":beside"))
		nesting = AP_NESTING_BESIDE;
	else if (colon && !strcmp(colon, ":outermost"))
		nesting = AP_NESTING_OUTERMOST;
	if (nesting)
		*colon = '\0';
	return nesting;
}

/* Sets the nesting. With nesting = beside, blocks that were malloc's become the definition's own. */
static int set_nesting(struct definition *definition, enum ap_nesting nesting, struct error *error)
{
	if (definition__only_counts(definition))
		return error__set(
			error, -EINVAL,
			"definition '%s' only counts calls, all of them: leave out its nesting",
			definition->name);
	definition->nesting = nesting;
	if (nesting == AP_NESTING_BESIDE && definition->blocks == AP_BLOCKS_OF_MALLOC)
		definition->blocks = definition->index + 1;
	return 0;
}

/* Sets @flag, that of the pseudo definition @name. */
static int add_pseudo(bool *flag, const char *name, enum ap_nesting nesting, struct error *error)
{
	if (nesting == AP_NESTING_OUTERMOST)
		return error__set(error, -EINVAL,
				  "%s:outermost is not possible: a %s has no calls beneath it; "
				  "take %s",
				  name,
				  !strcmp(name, DEFINITIONS_FAULTS) ? "page fault" : "system call",
				  name);
	*flag = true;
	return 0;
}

static int add_file(struct definitions *definitions, char *name, struct error *error)
{
	enum ap_nesting nesting = take_nesting(name);
	_cleanup_(free_ptr) char *text = NULL;
	size_t first = definitions->n;
	int err;

	if (!strcmp(name, DEFINITIONS_MAPPINGS))
		return add_pseudo(&definitions->mappings, name, nesting, error);
	if (!strcmp(name, DEFINITIONS_FAULTS))
		return add_pseudo(&definitions->faults, name, nesting, error);
	err = read_definition(name, &text, error);
	if (!err)
		err = parse_file(definitions, text, name, error);
	for (size_t i = first; i < definitions->n && nesting && !err; i++)
		err = set_nesting(&definitions->list[i], nesting, error);
	return err;
}

int definitions__add_files(struct definitions *definitions, const char *list, struct error *error)
{
	_cleanup_(free_ptr) char *copy = strdup(list);
	char *rest = copy, *name;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ",")))
		err = add_file(definitions, name, error);
	return err;
}

/* Returns the next comma outside of parentheses, or the end of the text. */
static char *find_comma(char *text)
{
	unsigned int depth = 0;

	for (; *text && (*text != ',' || depth); text++) {
		depth += *text == '(';
		depth -= *text == ')' && depth;
	}
	return text;
}

/* Chooses the name "probe", or "probe2" and so on if that is taken. */
static void choose_name(const struct definitions *definitions, char *name, size_t size)
{
	snprintf(name, size, "probe");
	for (int i = 2; definition_names__has(&definitions->names, name); i++)
		snprintf(name, size, "probe%d", i);
}

static bool takes_name(char *line, char **name)
{
	char *equals = strchr(line, '=');

	if (!equals || strchr(line, '('))
		return false;
	*equals = '\0';
	if (!strcmp(trim(line), "name")) {
		*name = trim(equals + 1);
		return true;
	}
	*equals = '=';
	return false;
}

/* The @first piece of a --probe may be its name. */
static int begin_probe(struct definitions *definitions, char *first, bool *is_name,
		       struct error *error)
{
	char name[DEFINITION_NAME_MAX + 1], *given = name;

	choose_name(definitions, name, sizeof(name));
	*is_name = takes_name(first, &given);
	return begin_definition(definitions, given, "--probe", error);
}

int definitions__add_probe(struct definitions *definitions, const char *text,
			   const char *const *modules, struct error *error)
{
	_cleanup_(free_ptr) char *copy = strdup(text);
	struct definition *definition = NULL;
	bool more = true;
	int err = copy ? 0 : -ENOMEM;

	for (char *line = copy; !err && more;) {
		char *end = find_comma(line);
		bool is_name = false;

		more = *end == ',';
		*end = '\0';
		if (!definition) {
			err = begin_probe(definitions, line, &is_name, error);
			definition = err ? NULL : &definitions->list[definitions->n - 1];
		}
		if (!err && !is_name)
			err = parse_line(definitions, definition, trim(line), "--probe", error);
		line = end + 1;
	}
	for (; !err && !definition->n_modules && modules && *modules; modules++)
		err = definition__add_module(definition, *modules);
	return err ? err : end_definition(definition, "--probe", error);
}

/* Returns the colon between file and definition (which begins with a word and '='); NULL if there
 * is none. */
static const char *find_definition(const char *text)
{
	for (const char *at = strchr(text, ':'); at; at = strchr(at + 1, ':')) {
		const char *word = at + 1 + strspn(at + 1, blanks);
		size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz");

		word += len;
		if (len && word[strspn(word, blanks)] == '=')
			return at;
	}
	return NULL;
}

int definitions__add_usdt(struct definitions *definitions, const char *text, struct error *error)
{
	const char *lines = find_definition(text), *files[2] = { NULL };
	_cleanup_(free_ptr) char *file = NULL;
	const struct definition *definition;
	int err;

	if (!lines || lines == text)
		return error__set(error, -EINVAL,
				  "--usdt '%s' names no file, or no probes; it has to be such as "
				  "FILE:alloc=pool:get(size=arg0)->arg1",
				  text);
	file = strndup(text, lines - text);
	if (!file)
		return -ENOMEM;
	files[0] = file;
	err = definitions__add_probe(definitions, lines + 1, files, error);
	if (err)
		return err;
	definition = &definitions->list[definitions->n - 1];
	if (definition->is_usdt)
		return 0;
	return error__set(error, -EINVAL,
			  "--usdt: %s is no USDT probe, which are called provider:name; functions "
			  "are for --probe",
			  definition->functions[0].name);
}

void definitions__release(struct definitions *definitions)
{
	for (size_t i = 0; i < definitions->n; i++) {
		struct definition *definition = &definitions->list[i];

		for (size_t j = 0; j < definition->n_modules; j++)
			free(definition->modules[j]);
		for (size_t j = 0; j < definition->n_functions; j++) {
			free(definition->functions[j].name);
			free(definition->functions[j].word);
		}
		free(definition->modules);
		free(definition->functions);
		free(definition->switch_name);
		free(definition->domain);
		free(definition->text);
	}
	*definitions = (struct definitions){ 0 };
}

bool definitions__any(const struct definitions *definitions)
{
	return definitions->n || definitions->mappings || definitions->faults;
}

bool definitions__has_mappings(const struct definitions *definitions)
{
	return definitions && definitions->mappings;
}

bool definitions__has_faults(const struct definitions *definitions)
{
	return definitions && definitions->faults;
}

bool definitions__count_in_all(const struct definitions *definitions)
{
	return definitions__has_mappings(definitions) || definitions__has_faults(definitions);
}

bool definitions__any_usdt(const struct definitions *definitions)
{
	for (size_t i = 0; definitions && i < definitions->n; i++)
		if (definitions->list[i].is_usdt)
			return true;
	return false;
}

bool definitions__any_weight(const struct definitions *definitions)
{
	for (size_t i = 0; definitions && i < definitions->n; i++)
		for (size_t j = 0; j < definitions->list[i].n_functions; j++)
			if (definitions->list[i].functions[j].interface.weight)
				return true;
	return false;
}

bool definition__only_counts(const struct definition *definition)
{
	return definition->blocks == AP_ONLY_COUNTED;
}

bool definitions__any_counted(const struct definitions *definitions)
{
	for (size_t i = 0; definitions && i < definitions->n; i++)
		if (definition__only_counts(&definitions->list[i]))
			return true;
	return false;
}

bool definitions__any_outermost(const struct definitions *definitions)
{
	for (size_t i = 0; definitions && i < definitions->n; i++)
		if (definitions->list[i].nesting == AP_NESTING_OUTERMOST)
			return true;
	return false;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool module__matches(const char *module, const char *path, const char *soname)
{
	struct pattern pattern;
	bool matches;

	if (strchr(module, '/'))
		return !strcmp(module, path) || is_same_file(module, path);
	if (pattern__parse(&pattern, module, NULL))
		return false;
	matches = pattern__match(&pattern, path__name(path)) ||
		  (*soname && pattern__match(&pattern, soname));
	pattern__release(&pattern);
	return matches;
}

bool definition__is_in(const struct definition *definition, const char *path, const char *soname)
{
	for (size_t i = 0; i < definition->n_modules; i++)
		if (module__matches(definition->modules[i], path, soname))
			return true;
	return !definition->n_modules;
}

const struct definition_function *definition__find(const struct definition *definition,
						   const char *name)
{
	for (size_t i = 0; i < definition->n_functions; i++)
		if (!strcmp(definition->functions[i].name, name))
			return &definition->functions[i];
	return NULL;
}
