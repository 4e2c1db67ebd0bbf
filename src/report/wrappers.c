// SPDX-License-Identifier: GPL-3.0-or-later
#include "wrappers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "path.h"
#include "text.h"
#include "wrappers_data.h"

#define MAX_FILE_SIZE (1UL << 20)

static const char blanks[] = " \t\r";

/* A pattern, whose strings point into @texts. */
struct wrapper_pattern {
	const char *module; /* NULL: any */
	const char *name;
	bool folds; /* for a library's internal function; else for a wrapper */
	bool shows; /* an exception to earlier patterns of its kind */
};

struct wrappers {
	char **texts; /* contents of the files, split into lines */
	size_t n_texts, texts_room;
	struct wrapper_pattern *patterns;
	size_t n_patterns, patterns_room;
};

static int add_pattern(struct wrappers *wrappers, const struct wrapper_pattern *pattern)
{
	if (array__reserve(&wrappers->patterns, &wrappers->patterns_room, wrappers->n_patterns + 1,
			   sizeof(*wrappers->patterns)))
		return -ENOMEM;
	wrappers->patterns[wrappers->n_patterns++] = *pattern;
	return 0;
}

/* Parses a line. Returns 0, also for an empty line and a comment; -EINVAL, -ENOMEM. */
static int parse_line(struct wrappers *wrappers, char *line)
{
	struct wrapper_pattern pattern = { 0 };
	size_t len;

	line += strspn(line, blanks);
	for (len = strlen(line); len && strchr(blanks, line[len - 1]); len--)
		line[len - 1] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (*line == '!') {
		pattern.shows = true;
		line++;
	}
	if (*line == '~') {
		pattern.folds = true;
		line++;
	}
	if (*line == '@') {
		pattern.module = ++line;
		line += strcspn(line, blanks);
		if (!*line || line == pattern.module)
			return -EINVAL;
		*line++ = '\0';
	}
	line += strspn(line, blanks);
	if (!*line)
		return -EINVAL;
	pattern.name = line;
	return add_pattern(wrappers, &pattern);
}

/* Parses @text, which was read from @path, and takes it over. */
static int parse(struct wrappers *wrappers, char *text, const char *path, struct error *error)
{
	unsigned int number = 1;

	if (array__reserve(&wrappers->texts, &wrappers->texts_room, wrappers->n_texts + 1,
			   sizeof(*wrappers->texts))) {
		free(text);
		return -ENOMEM;
	}
	wrappers->texts[wrappers->n_texts++] = text;
	for (char *next; text; text = next, number++) {
		int err;

		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		err = parse_line(wrappers, text);
		if (err == -EINVAL)
			return error__set(error, err,
					  "line %u of %s has no pattern; it has to be PATTERN or "
					  "@MODULE PATTERN",
					  number, path);
		if (err)
			return err;
	}
	return 0;
}

static int load_file(struct wrappers *wrappers, const char *path, bool may_be_missing,
		     struct error *error)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	char *text;
	int err;

	if (fd < 0) {
		err = -errno;
		/* HOME may be another user's, as after su(1), and not accessible. */
		if (may_be_missing && (err == -ENOENT || err == -ENOTDIR || err == -EACCES))
			return 0;
	} else {
		err = text_file__read(fd, MAX_FILE_SIZE + 1, &text, &size);
		if (!err && size <= MAX_FILE_SIZE)
			return parse(wrappers, text, path, error);
	}
	if (!err) {
		free(text);
		return error__set(error, -EFBIG,
				  "cannot use the list of wrappers %s: it is larger than 1 MiB",
				  path);
	}
	return error__set(error, err, "cannot read the list of wrappers %s: %s", path,
			  strerror(-err));
}

static int load_users(struct wrappers *wrappers, struct error *error)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	_cleanup_(free_ptr) char *path = NULL;
	int len;

	/* The XDG Base Directory Specification ignores relative paths. */
	if (config && *config == '/')
		len = asprintf(&path, "%s/allocprof/wrappers", config);
	else if (home && *home == '/')
		len = asprintf(&path, "%s/.config/allocprof/wrappers", home);
	else
		return 0;
	if (len < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return load_file(wrappers, path, true, error);
}

static int load_builtin(struct wrappers *wrappers, struct error *error)
{
	char *text = strdup(WRAPPERS_DATA);

	return text ? parse(wrappers, text, "the built-in list", error) : -ENOMEM;
}

static int load_others(struct wrappers *wrappers, const char *extra_path, struct error *error)
{
	int err = load_users(wrappers, error);

	return err || !extra_path ? err : load_file(wrappers, extra_path, false, error);
}

int wrappers__load_builtin(struct wrappers **out)
{
	struct wrappers *wrappers = calloc(1, sizeof(*wrappers));
	struct error error = { 0 };
	int err = wrappers ? load_builtin(wrappers, &error) : -ENOMEM;

	if (err)
		wrappers__free(wrappers);
	else
		*out = wrappers;
	return err;
}

int wrappers__load(const char *extra_path, struct wrappers **out, struct error *error)
{
	struct wrappers *wrappers;
	int err = wrappers__load_builtin(&wrappers);

	if (err)
		return err;
	err = load_others(wrappers, extra_path, error);
	if (err)
		wrappers__free(wrappers);
	else
		*out = wrappers;
	return err;
}

void wrappers__free(struct wrappers *wrappers)
{
	if (!wrappers)
		return;
	for (size_t i = 0; i < wrappers->n_texts; i++)
		free(wrappers->texts[i]);
	free(wrappers->texts);
	free(wrappers->patterns);
	free(wrappers);
}

static bool is_listed(const struct wrappers *wrappers, bool folds, const char *name,
		      const char *module_path)
{
	const char *module = module_path ? path__name(module_path) : "";

	for (size_t i = wrappers->n_patterns; i; i--) {
		const struct wrapper_pattern *pattern = &wrappers->patterns[i - 1];

		if (pattern->folds == folds && text__matches(pattern->name, name) &&
		    (!pattern->module || text__matches(pattern->module, module)))
			return !pattern->shows;
	}
	return false;
}

bool wrappers__hides(const struct wrappers *wrappers, const char *name, const char *module_path)
{
	return is_listed(wrappers, false, name, module_path);
}

bool wrappers__folds(const struct wrappers *wrappers, const char *name, const char *module_path)
{
	return is_listed(wrappers, true, name, module_path);
}
