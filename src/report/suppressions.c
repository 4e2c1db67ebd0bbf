// SPDX-License-Identifier: GPL-3.0-or-later
#include "suppressions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"

/* Matches as sanitizer_common's TemplateMatch() does, including its quirks ("b$" does not match
 * "bb"), so that a file hides the same leaks here. */
bool suppression__match(const char *template, const char *text)
{
	bool at_start = *template == '^', asterisk = false;

	if (!*text)
		return false;
	template += at_start;
	while (*template) {
		size_t len = strcspn(template, "*$");
		const char *found;

		if (*template == '*') {
			template ++;
			at_start = false;
			asterisk = true;
			continue;
		}
		if (*template == '$')
			return !*text || asterisk;
		found = *text ? memmem(text, strlen(text), template, len) : NULL;
		if (!found || (at_start && found != text))
			return false;
		text = found + len;
		template += len;
		at_start = asterisk = false;
	}
	return true;
}

int suppressions__find(const struct suppressions *suppressions, const char *text)
{
	for (size_t i = 0; i < suppressions->n; i++) {
		if (suppression__match(suppressions->list[i].template, text))
			return i;
	}
	return -1;
}

void suppressions__release(struct suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->n; i++)
		free(suppressions->list[i].template);
	free(suppressions->list);
	*suppressions = (struct suppressions){ 0 };
}

static int add(struct suppressions *suppressions, const char *template)
{
	struct suppression suppression;

	if (array__reserve(&suppressions->list, &suppressions->room, suppressions->n + 1,
			   sizeof(suppression)))
		return -ENOMEM;
	suppression = (struct suppression){ .template = strdup(template) };
	if (!suppression.template)
		return -ENOMEM;
	suppressions->list[suppressions->n++] = suppression;
	return 0;
}

static int read_lines(FILE *file, const char *path, struct suppressions *suppressions,
		      struct error *error)
{
	_cleanup_(free_ptr) char *line = NULL;
	size_t room = 0;

	for (int number = 1; errno = 0, getline(&line, &room, file) >= 0; number++) {
		char *text = line + strspn(line, " \t");
		char *end = text + strlen(text);

		while (end > text && strchr(" \t\r\n", end[-1]))
			*--end = '\0';
		if (!*text || *text == '#')
			continue;
		if (strncmp(text, "leak:", 5))
			return error__set(error, -EINVAL,
					  "%s:%d: '%.64s' is no suppression; write leak:PATTERN "
					  "there, or # before a comment",
					  path, number, text);
		if (add(suppressions, text + 5))
			return error__set(error, -ENOMEM, "cannot read %s: out of memory", path);
	}
	if (ferror(file))
		return error__set(error, errno ? -errno : -EIO,
				  "cannot read the suppressions in %s: %s; name another file", path,
				  strerror(errno));
	return 0;
}

int suppressions__read(const char *path, struct suppressions *suppressions, struct error *error)
{
	_cleanup_(close_file) FILE *file = fopen(path, "re");
	struct suppressions read = { 0 };
	int err;

	if (!file)
		return error__set(error, -errno,
				  "cannot read the suppressions in %s: %s; name another file", path,
				  strerror(errno));
	err = read_lines(file, path, &read, error);
	if (err) {
		suppressions__release(&read);
		return err;
	}
	*suppressions = read;
	return 0;
}
