// SPDX-License-Identifier: GPL-3.0-or-later
#include "wanted_function.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_parse.h"
#include "dynamic_section.h"
#include "error.h"
#include "file.h"
#include "function_code.h"
#include "path.h"

static const char usdt_prefix[] = "sdt:";

static bool is_usdt(const char *symbol)
{
	return !strncmp(symbol, usdt_prefix, strlen(usdt_prefix));
}

int wanted_function__parse(struct wanted_function *wanted, const char *text, const char *option,
			   bool only_code, struct error *error)
{
	const char *at = text ? strchr(text, '@') : NULL;

	if (!text)
		return 0;
	if (!*text || at == text || (at && !at[1]))
		return error__set(error, -EINVAL,
				  "'%s' is no function; %s takes SYMBOL or SYMBOL@FILE", text,
				  option);
	if (is_usdt(text) && only_code)
		return error__set(
			error, -EINVAL,
			"'%s' is a USDT probe, which has no calls beneath it; --within takes a "
			"function, --start-on and --stop-on take USDT probes",
			text);
	wanted->symbol = at ? strndup(text, at - text) : strdup(text);
	wanted->file = at ? strdup(at + 1) : NULL;
	return wanted->symbol && (!at || wanted->file) ? 0 : -ENOMEM;
}

void wanted_function__release(struct wanted_function *wanted)
{
	free(wanted->symbol);
	free(wanted->file);
	*wanted = (struct wanted_function){ 0 };
}

bool wanted_function__is_path(const struct wanted_function *wanted)
{
	return !wanted->file || strchr(wanted->file, '/');
}

int wanted_function__open(const struct wanted_function *wanted, const char *program,
			  const char *root, char **path)
{
	bool in_root = wanted->file && wanted->file[0] == '/' && *root;

	if (!wanted->file)
		*path = strdup(program);
	else if (asprintf(path, "%s%s", wanted->file[0] == '/' ? root : "", wanted->file) < 0)
		*path = NULL;
	if (!*path)
		return -ENOMEM;
	return in_root ? regular_file__open_in(root, wanted->file) : regular_file__open(*path);
}

bool wanted_function__is_in(struct wanted_function *wanted, struct parser *parser, int fd,
			    const char *path)
{
	struct dynamic_section dynamic;
	bool is;
	int err;

	if (!wanted->symbol || wanted_function__is_path(wanted))
		return false;
	if (!strcmp(path__name(path), wanted->file))
		return true;
	err = dynamic_section__parse(parser, fd, path, &dynamic);
	if (err == -ECHILD || err == -ENOMEM)
		wanted->missed_files = true;
	if (err)
		return false;
	is = !strcmp(dynamic.name, wanted->file);
	dynamic_section__release(&dynamic);
	return is;
}

const char *wanted_function__not_found(const struct wanted_function *wanted)
{
	return wanted->missed_files ? "the target did not load the file of its function, or that "
				      "file is one that could not be read safely"
				    : "the target did not load the file of its function";
}

int wanted_function__find(struct wanted_function *wanted, struct parser *parser, int fd,
			  const char *path, const char *option, struct function_code *out,
			  struct error *error)
{
	bool of_probe = is_usdt(wanted->symbol);
	const char *name = wanted->symbol + (of_probe ? strlen(usdt_prefix) : 0);
	int err = function_code__parse(parser, fd, path, name, of_probe, out, error);

	/* -ENOENT would mean that the command does not exist. */
	if (err == -ENOENT)
		err = -ESRCH;
	if (err)
		return error && error->text[0] ? error__wrap(error, err, "%s", option) : err;
	wanted->found = true;
	return 0;
}
