// SPDX-License-Identifier: GPL-3.0-or-later
#include "module_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "elf_headers.h"
#include "error.h"
#include "file.h"
#include "path.h"
#include "profile.h"

char *module_file__build_id_name(const char *build_id)
{
	char *name;

	if (strlen(build_id) < 3 || asprintf(&name, "%.2s/%s", build_id, build_id + 2) < 0)
		return NULL;
	return name;
}

/* How many processes are looked at for root directories of their own. */
#define MAX_ROOTS 256

/* Takes the opened file, or the error of opening it. Returns the file if it is the module's, else
 * a negative errno. */
static int check(int opened, const char *path, const struct profile_module *module,
		 struct error *error)
{
	_cleanup_(close_fd) int fd = opened;
	struct elf_headers *elf;
	const char *build_id;
	int err, kept;

	if (fd == -ENOENT)
		return error__set(error, -ENOENT,
				  "%s is not there any more; if it is a container's, name the "
				  "directory that is its root with --debug-dir",
				  path);
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

/* Opens @path if it is the module's file. */
static int try(const char *path, const struct profile_module *module, struct error *error)
{
	return check(regular_file__open(path), path, module, error);
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

/* Returns @path as it is called below @root, a link /proc/PID/root. If allocprof runs in a chroot,
 * the kernel names a file of another mount namespace by its path from that namespace's own root,
 * and the link's target has the same form. */
static const char *path_below(const char *root, const char *path)
{
	char own[PATH_MAX];
	ssize_t len = readlink(root, own, sizeof(own));

	if (len > 1 && !strncmp(path, own, len) && path[len] == '/')
		return path + len;
	return path;
}

/* Tries the path below the root directories of recorded processes that still run, as in
 * containers. A file is only known to be the same by its build id, so without one none is taken. */
static int try_roots(const struct profile *profile, const struct profile_module *module)
{
	size_t tried = 0;

	if (!*module->build_id)
		return -ENOENT;
	for (size_t i = 0; i < profile->n_processes && tried < MAX_ROOTS; i++) {
		char root[32];
		int fd;

		if (profile->processes[i].end_ns)
			continue;
		tried++;
		snprintf(root, sizeof(root), "/proc/%u/root", profile->processes[i].pid);
		fd = check(regular_file__open_in(root, path_below(root, module->path)),
			   module->path, module, NULL);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

int module_file__open(const struct profile *profile, const struct profile_module *module,
		      const char *const *debug_dirs, struct error *error)
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
		/* A file of the same name in another directory is trusted only if there is a build
		 * id to compare. */
		if (fd < 0 && name)
			fd = try_below(*debug_dirs, "%s/%s", path__name(module->path), module);
	}
	if (fd < 0)
		fd = try_roots(profile, module);
	return fd < 0 ? try(module->path, module, error) : fd;
}
