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

static const struct wire_struct installed_debug_type = {
	.fields = {
		{ WIRE_OPTIONAL(struct installed_debug, path, PATH_MAX + 1) },
		{ WIRE_OPTIONAL(struct installed_debug, alt_path, PATH_MAX + 1) },
		{ WIRE_TEXT(struct installed_debug, alt_build_id) },
	},
};

/* In the worker: fills @found, whose paths are those of @debug and @alt. */
static int find_files(struct debug_search *search, const struct debug_file *file,
		      struct debug_file *debug, struct debug_file *alt,
		      struct installed_debug *found)
{
	const struct debug_file *dwarf = file;
	const char *name;
	int err;

	if (!debug_file__has_dwarf(file->elf)) {
		err = debug_file__find(search, debug, NULL);
		if (err)
			return err;
		dwarf = debug;
	}
	found->path = debug->path;
	if (!debug_file__alt_name(dwarf, &name, found->alt_build_id))
		return 0;
	err = debug_file__find_alt(search, dwarf, name, found->alt_build_id, alt, NULL);
	found->alt_path = err ? NULL : alt->path;
	return err;
}

static int find_and_put(struct debug_search *search, const struct debug_file *file,
			struct wire_writer *result)
{
	_cleanup_(close_debug) struct debug_file debug = DEBUG_FILE_NONE;
	_cleanup_(close_debug) struct debug_file alt = DEBUG_FILE_NONE;
	struct installed_debug found = { 0 };

	if (find_files(search, file, &debug, &alt, &found) == -ENOMEM)
		return -ENOMEM;
	wire__put_struct(result, &installed_debug_type, &found, NULL);
	return 0;
}

/* In the worker. The parameters are the parent's, so to be trusted. */
static int find_for_task(struct parser_task *task)
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
	return find_and_put(&search, &file, task->result);
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
		.run = find_for_task,
		.fd = fd,
		.path = module->path,
		.name = "it",
		.parameters = &parameters,
		.needs_debug_file = true,
	};
	struct installed_debug debug = { 0 };
	struct error why = { 0 };
	int err;

	put_parameters(&parameters, module, dirs, n_dirs);
	err = parameters.has_failed ? -ENOMEM
				    : parser__call_struct(parser, &call, &installed_debug_type,
							  &debug, NULL, &why);
	wire__release(&parameters);
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
