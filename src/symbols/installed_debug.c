// SPDX-License-Identifier: GPL-3.0-or-later
#include "installed_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "parser.h"
#include "profile.h"

static void close_debug(struct debug_file *file)
{
	debug_file__close(file);
}

/* In the worker. */
static int find_alt(const struct debug_search *search, const struct debug_file *dwarf,
		    struct wire_writer *result)
{
	_cleanup_(close_debug) struct debug_file alt = DEBUG_FILE_NONE;
	char build_id[BUILD_ID_SIZE];
	const char *name;
	int err;

	if (!debug_file__alt_name(dwarf, &name, build_id))
		return 0;
	err = debug_file__find_alt(search, dwarf, name, build_id, &alt, NULL);
	if (err)
		return err == -ENOMEM ? err : 0;
	wire__put_string(result, alt.path);
	wire__put_string(result, build_id);
	return 0;
}

/* In the worker. The result has up to three texts, in the order of the struct's fields. */
static int find(struct debug_search *search, const struct debug_file *file,
		struct wire_writer *result)
{
	_cleanup_(close_debug) struct debug_file debug = DEBUG_FILE_NONE;
	const struct debug_file *dwarf = file;
	int err = 0;

	if (!debug_file__has_dwarf(file->elf)) {
		err = debug_file__find(search, &debug, NULL);
		dwarf = &debug;
	}
	if (err)
		return err == -ENOMEM ? err : 0;
	wire__put_string(result, debug.path);
	return find_alt(search, dwarf, result);
}

/* In the worker. The parameters are the parent's, so to be trusted. */
static int run(struct parser_task *task)
{
	_cleanup_(close_debug) struct debug_file file = DEBUG_FILE_NONE;
	_cleanup_(free_ptr) const char **dirs = NULL;
	struct debug_search search = { .fd = task->fd, .path = task->path };
	int err, fd = fcntl(task->fd, F_DUPFD_CLOEXEC, 0);

	search.build_id = wire__get_string(&task->parameters, BUILD_ID_SIZE);
	search.n_dirs = wire__get_count(&task->parameters, sizeof(__u32));
	search.dirs = dirs = calloc(search.n_dirs + 1, sizeof(*dirs));
	for (size_t i = 0; dirs && i < search.n_dirs; i++)
		dirs[i] = wire__get_string(&task->parameters, PATH_MAX + 1);
	if (fd < 0 || !dirs || !wire__is_read(&task->parameters)) {
		close_fd(&fd);
		return -ENOMEM;
	}
	err = debug_file__open(fd, task->path, &file, task->error);
	if (err)
		return err;
	search.elf = file.elf;
	return find(&search, &file, task->result);
}

/* NULL was written, or nothing. -EPROTO, -ENOMEM. */
static int take_path(struct wire_reader *result, char **out)
{
	const char *path = result->left ? wire__get_string(result, PATH_MAX + 1) : NULL;

	if (result->is_bad)
		return -EPROTO;
	*out = path ? strdup(path) : NULL;
	return path && !*out ? -ENOMEM : 0;
}

static int take(struct wire_reader *result, struct installed_debug *debug)
{
	const char *build_id = NULL;
	int err = take_path(result, &debug->path);

	if (!err)
		err = take_path(result, &debug->alt_path);
	if (!err && debug->alt_path)
		build_id = wire__get_string(result, sizeof(debug->alt_build_id));
	if (!err && (!wire__is_read(result) || (debug->alt_path && !build_id)))
		err = -EPROTO;
	if (!err && build_id)
		strcpy(debug->alt_build_id, build_id);
	return err;
}

/* Nothing can be opened below a directory whose own path is too long: it has no files. */
static bool can_have_files(const char *dir)
{
	return strlen(dir) < PATH_MAX;
}

static void put_parameters(struct wire_writer *parameters, const struct profile_module *module,
			   const char *const *dirs, size_t n_dirs)
{
	size_t n = 0;

	for (size_t i = 0; i < n_dirs; i++)
		n += can_have_files(dirs[i]);
	wire__put_string(parameters, module->build_id);
	wire__put_u64(parameters, n);
	for (size_t i = 0; i < n_dirs; i++)
		if (can_have_files(dirs[i]))
			wire__put_string(parameters, dirs[i]);
}

int installed_debug__find(struct parser *parser, int fd, const struct profile_module *module,
			  const char *const *dirs, size_t n_dirs, struct installed_debug *out,
			  struct error *error)
{
	struct wire_writer parameters = { 0 };
	struct parser_call call = {
		.run = run,
		.fd = fd,
		.path = module->path,
		.name = "it",
		.parameters = &parameters,
		.needs_debug_file = true,
	};
	struct installed_debug debug = { 0 };
	struct error why = { 0 };
	struct wire_reader result;
	int err;

	put_parameters(&parameters, module, dirs, n_dirs);
	err = parameters.has_failed ? -ENOMEM : parser__call(parser, &call, &result, &why);
	wire__release(&parameters);
	if (!err)
		err = take(&result, &debug);
	if (err == -EPROTO)
		err = parser__refuse(parser, call.name, &why);
	if (err) {
		installed_debug__release(&debug);
		return error__set(error, err, "the debug files of %s: %s", module->path,
				  why.text[0] ? why.text : strerror(-err));
	}
	*out = debug;
	return 0;
}

void installed_debug__release(struct installed_debug *debug)
{
	free(debug->path);
	free(debug->alt_path);
	*debug = (struct installed_debug){ 0 };
}
