// SPDX-License-Identifier: GPL-3.0-or-later
#include "module_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "elf_headers.h"
#include "error.h"
#include "path.h"
#include "profile.h"
#include "regular_file.h"

char *module_file__build_id_name(const char *build_id)
{
	char *name;

	if (strlen(build_id) < 3 || asprintf(&name, "%.2s/%s", build_id, build_id + 2) < 0)
		return NULL;
	return name;
}

/* Opens @path if it is the module's file. */
static int try(const char *path, const struct profile_module *module, struct error *error)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct elf_headers *elf;
	const char *build_id;
	int err, kept;

	if (fd == -ENOENT)
		return error__set(error, -ENOENT, "%s is not there any more", path);
	if (fd < 0)
		return error__set(error, -ENOENT, "cannot open %s: %s", path, strerror(-fd));
	err = elf_headers__read(fd, &elf);
	if (err == -ENOEXEC)
		return error__set(error, err,
				  "%s is no program and no library that allocprof can read", path);
	if (err)
		return error__set(error, err, "cannot read %s: %s", path, strerror(-err));
	build_id = elf_headers__build_id(elf);
	if (strcmp(build_id, module->build_id))
		err = error__set(error, -EINVAL,
				 "%s is another file now: its build id is %s, recorded was %s",
				 path, *build_id ? build_id : "missing",
				 *module->build_id ? module->build_id : "none");
	elf_headers__free(elf);
	if (err)
		return err;
	kept = fd;
	fd = -1;
	return kept;
}

static int try_below(const char *directory, const char *format, const char *name,
		     const struct profile_module *module)
{
	_cleanup_(free_ptr) char *path = NULL;

	if (asprintf(&path, format, directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return try(path, module, NULL);
}

int module_file__open(const struct profile_module *module, const char *const *debug_dirs,
		      struct error *error)
{
	_cleanup_(free_ptr) char *name = module_file__build_id_name(module->build_id);
	int fd = -ENOENT;

	if (*module->path != '/')
		return error__set(error, -ENOENT, "%s is no file", module->path);
	for (; debug_dirs && *debug_dirs && fd < 0; debug_dirs++) {
		if (name)
			fd = try_below(*debug_dirs, "%s/.build-id/%s", name, module);
		if (fd < 0)
			fd = try_below(*debug_dirs, "%s%s", module->path, module);
		/* By its name alone it is the file only if there is a build id to compare. */
		if (fd < 0 && name)
			fd = try_below(*debug_dirs, "%s/%s", path__name(module->path), module);
	}
	return fd < 0 ? try(module->path, module, error) : fd;
}
