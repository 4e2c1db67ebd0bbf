// SPDX-License-Identifier: GPL-3.0-or-later
#include "sources.h"

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
#include "source_line.h"
#include "sources_data.h"

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

static int begin_source(struct sources *sources, const char *name, const char *where,
			struct error *error)
{
	struct source *source;
	int index;

	if (source_names__has(&sources->names, name))
		return error__set(error, -EINVAL,
				  "%s: a source '%s' is defined already; give it another name",
				  where, name);
	index = source_names__add(&sources->names, name);
	if (index == -E2BIG)
		return error__set(error, -EINVAL, "%s: %d sources at the most can be defined",
				  where, AP_MAX_SOURCES);
	if (index < 0)
		return error__set(
			error, -EINVAL,
			"%s: '%s' is no name of a source; it takes letters, digits, '-' and "
			"'_', %d of them at the most",
			where, name, SOURCE_NAME_MAX);
	source = &sources->list[sources->n];
	*source = (struct source){
		.text = strdup(name),
		.index = index,
		.nesting = AP_NESTING_NONE, /* unknown so far */
		.blocks = index + 1,
	};
	if (!source->text)
		return -ENOMEM;
	source->name = source->text;
	sources->n++;
	return 0;
}

static int end_source(struct source *source, const char *where, struct error *error)
{
	if (!source->n_functions)
		return error__set(error, -EINVAL,
				  "%s: source '%s' has no function; it needs a line such as "
				  "alloc = pool_get(size=arg0)",
				  where, source->name);
	if (source->is_usdt && source->nesting == AP_NESTING_OUTERMOST)
		return error__set(
			error, -EINVAL,
			"%s: source '%s' cannot be outermost: a USDT probe has no return, "
			"so it counts beside malloc",
			where, source->name);
	if (source->nesting == AP_NESTING_NONE)
		source->nesting = source->is_usdt ? AP_NESTING_BESIDE : AP_NESTING_OUTERMOST;
	if (source->nesting == AP_NESTING_BESIDE && source->blocks == AP_BLOCKS_OF_MALLOC)
		return error__set(error, -EINVAL,
				  "%s: source '%s' has blocks = malloc, and counts beside malloc: "
				  "each block would count twice; take nesting = outermost",
				  where, source->name);
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

/* Parses the sections of a definition; modifies @text. @path is for messages. */
static int parse_file(struct sources *sources, char *text, const char *path, struct error *error)
{
	struct source *source = NULL;
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
			if (source)
				err = end_source(source, where, error);
			if (!err)
				err = begin_source(sources, trim(line + 1), where, error);
			source = err ? NULL : &sources->list[sources->n - 1];
		} else if (!source) {
			err = error__set(error, -EINVAL,
					 "%s: '%s' is in no section; a definition begins with a "
					 "line such as [pool]",
					 where, line);
		} else {
			err = source__parse_line(source, line, where, error);
		}
	}
	if (err)
		return err;
	if (!source)
		return error__set(error, -EINVAL,
				  "%s defines nothing; a definition begins with a line such as "
				  "[pool]",
				  path);
	return end_source(source, path, error);
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

const char *const *sources__shipped(void)
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
			  "no definition '%s' comes with allocprof; it has %s" SOURCES_MAPPINGS
			  ", and takes the path "
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

/* With nesting = beside, blocks that were malloc's become the source's own. */
static void set_nesting(struct source *source, enum ap_nesting nesting)
{
	source->nesting = nesting;
	if (nesting == AP_NESTING_BESIDE && source->blocks == AP_BLOCKS_OF_MALLOC)
		source->blocks = source->index + 1;
}

static int add_mappings(struct sources *sources, enum ap_nesting nesting, struct error *error)
{
	if (nesting == AP_NESTING_OUTERMOST)
		return error__set(
			error, -EINVAL,
			"mmap:outermost is not possible: a system call has no calls beneath "
			"it; take mmap");
	sources->mappings = true;
	return 0;
}

static int add_file(struct sources *sources, char *name, struct error *error)
{
	enum ap_nesting nesting = take_nesting(name);
	_cleanup_(free_ptr) char *text = NULL;
	size_t first = sources->n;
	int err;

	if (!strcmp(name, SOURCES_MAPPINGS))
		return add_mappings(sources, nesting, error);
	err = read_definition(name, &text, error);
	if (!err)
		err = parse_file(sources, text, name, error);
	for (size_t i = first; i < sources->n && nesting && !err; i++)
		set_nesting(&sources->list[i], nesting);
	return err;
}

int sources__add_files(struct sources *sources, const char *list, struct error *error)
{
	_cleanup_(free_ptr) char *copy = strdup(list);
	char *rest = copy, *name;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ",")))
		err = add_file(sources, name, error);
	return err;
}

/* The next comma outside of parentheses, or the end of the text. */
static char *find_comma(char *text)
{
	unsigned int depth = 0;

	for (; *text && (*text != ',' || depth); text++) {
		depth += *text == '(';
		depth -= *text == ')' && depth;
	}
	return text;
}

/* "probe", or "probe2" and so on if that is taken. */
static void choose_name(const struct sources *sources, char *name, size_t size)
{
	snprintf(name, size, "probe");
	for (int i = 2; source_names__has(&sources->names, name); i++)
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
static int begin_probe(struct sources *sources, char *first, bool *is_name, struct error *error)
{
	char name[SOURCE_NAME_MAX + 1], *given = name;

	choose_name(sources, name, sizeof(name));
	*is_name = takes_name(first, &given);
	return begin_source(sources, given, "--probe", error);
}

int sources__add_probe(struct sources *sources, const char *text, const char *const *modules,
		       struct error *error)
{
	_cleanup_(free_ptr) char *copy = strdup(text);
	struct source *source = NULL;
	bool more = true;
	int err = copy ? 0 : -ENOMEM;

	for (char *line = copy; !err && more;) {
		char *end = find_comma(line);
		bool is_name = false;

		more = *end == ',';
		*end = '\0';
		if (!source) {
			err = begin_probe(sources, line, &is_name, error);
			source = err ? NULL : &sources->list[sources->n - 1];
		}
		if (!err && !is_name)
			err = source__parse_line(source, trim(line), "--probe", error);
		line = end + 1;
	}
	for (; !err && !source->n_modules && modules && *modules; modules++)
		err = source__add_module(source, *modules);
	return err ? err : end_source(source, "--probe", error);
}

/* The colon between file and definition, which begins with a word and '='; NULL if there is
 * none. */
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

int sources__add_usdt(struct sources *sources, const char *text, struct error *error)
{
	const char *definition = find_definition(text), *files[2] = { NULL };
	_cleanup_(free_ptr) char *file = NULL;
	const struct source *source;
	int err;

	if (!definition || definition == text)
		return error__set(error, -EINVAL,
				  "--usdt '%s' names no file, or no probes; it has to be such as "
				  "FILE:alloc=pool:get(size=arg0)->arg1",
				  text);
	file = strndup(text, definition - text);
	if (!file)
		return -ENOMEM;
	files[0] = file;
	err = sources__add_probe(sources, definition + 1, files, error);
	if (err)
		return err;
	source = &sources->list[sources->n - 1];
	if (source->is_usdt)
		return 0;
	return error__set(error, -EINVAL,
			  "--usdt: %s is no USDT probe, which are called provider:name; functions "
			  "are for --probe",
			  source->functions[0].name);
}

void sources__release(struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		struct source *source = &sources->list[i];

		for (size_t j = 0; j < source->n_modules; j++)
			free(source->modules[j]);
		for (size_t j = 0; j < source->n_functions; j++)
			free(source->functions[j].name);
		free(source->modules);
		free(source->functions);
		free(source->text);
	}
	*sources = (struct sources){ 0 };
}

bool sources__any(const struct sources *sources)
{
	return sources->n || sources->mappings;
}

bool sources__has_mappings(const struct sources *sources)
{
	return sources && sources->mappings;
}

bool sources__any_usdt(const struct sources *sources)
{
	for (size_t i = 0; sources && i < sources->n; i++)
		if (sources->list[i].is_usdt)
			return true;
	return false;
}

bool sources__any_outermost(const struct sources *sources)
{
	for (size_t i = 0; sources && i < sources->n; i++)
		if (sources->list[i].nesting == AP_NESTING_OUTERMOST)
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

bool source__is_in(const struct source *source, const char *path, const char *soname)
{
	for (size_t i = 0; i < source->n_modules; i++)
		if (module__matches(source->modules[i], path, soname))
			return true;
	return !source->n_modules;
}

const struct source_function *source__find(const struct source *source, const char *name)
{
	for (size_t i = 0; i < source->n_functions; i++)
		if (!strcmp(source->functions[i].name, name))
			return &source->functions[i];
	return NULL;
}
