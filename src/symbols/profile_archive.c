// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "elf_headers.h"
#include "error.h"
#include "installed_debug.h"
#include "module_file.h"
#include "new_file.h"
#include "parser.h"
#include "profile.h"
#include "worker.h"

#define COPY_BYTES 65536

struct packing {
	const struct profile_archive_options *options;
	struct archive *archive;
	struct parser *parser;
	struct profile_archive_result result;
};

static void free_archive(struct archive **archive)
{
	archive_write_free(*archive);
}

static void free_parser(struct parser **parser)
{
	parser__free(*parser);
}

static void free_entry(struct archive_entry **entry)
{
	archive_entry_free(*entry);
}

static int fail(struct error *error, struct archive *archive, const char *path)
{
	int err = archive_errno(archive) > 0 ? -archive_errno(archive) : -EIO;

	return error__set(error, err, "cannot write %s: %s; write elsewhere with -o", path,
			  strerror(-err));
}

/* Writes exactly @size bytes, even if the file changes meanwhile. */
static int copy(struct archive *archive, int fd, __u64 size)
{
	_cleanup_(free_ptr) char *buffer = calloc(1, COPY_BYTES);
	ssize_t n = 1;

	if (!buffer)
		return -ENOMEM;
	for (__u64 at = 0; at < size; at += n) {
		size_t wanted = size - at < COPY_BYTES ? size - at : COPY_BYTES;

		n = n > 0 ? pread(fd, buffer, wanted, at) : n;
		if (n <= 0) {
			memset(buffer, 0, wanted);
			n = wanted;
		}
		if (archive_write_data(archive, buffer, n) != n)
			return -EIO;
	}
	return 0;
}

static int add_file(struct packing *packing, const char *name, int fd)
{
	_cleanup_(free_entry) struct archive_entry *entry = archive_entry_new();
	struct stat st;
	int err;

	if (!entry)
		return -ENOMEM;
	if (fstat(fd, &st))
		return -errno;
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, st.st_size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_mtime(entry, st.st_mtime, 0);
	if (archive_write_header(packing->archive, entry) != ARCHIVE_OK)
		return -EIO;
	err = copy(packing->archive, fd, st.st_size);
	if (!err) {
		packing->result.files++;
		packing->result.size_bytes += st.st_size;
	}
	return err;
}

/* The name of a module's file in the archive; to be freed. */
static char *entry_name(const struct profile_module *module)
{
	_cleanup_(free_ptr) char *id = module_file__build_id_name(module->build_id);
	char *name;

	if (id)
		return asprintf(&name, ".build-id/%s", id) < 0 ? NULL : name;
	return strdup(module->path + strspn(module->path, "/"));
}

static void release_debug(struct installed_debug *debug)
{
	installed_debug__release(debug);
}

static void leave_out(struct packing *packing, const struct profile_module *module,
		      const struct error *why)
{
	packing->result.missing++;
	packing->options->missing(module->path, why->text, packing->options->context);
}

/* The file has to be the one of @build_id, whatever the worker says. */
static bool has_build_id(int fd, const char *build_id)
{
	struct elf_headers *elf;
	bool has;

	if (elf_headers__read(fd, &elf))
		return false;
	has = !strcmp(elf_headers__build_id(elf), build_id);
	elf_headers__free(elf);
	return has;
}

/* Adds the file at @path, which may be NULL, as the debug file of @build_id. */
static int add_debug_file(struct packing *packing, const char *path, const char *build_id)
{
	_cleanup_(free_ptr) char *id = module_file__build_id_name(build_id);
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;

	if (!path || !id)
		return 0;
	fd = worker__open_file(path);
	if (fd < 0 || !has_build_id(fd, build_id))
		return 0;
	if (asprintf(&name, ".build-id/%s.debug", id) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	return add_file(packing, name, fd);
}

/* Adds the debug file of the ELF file behind @fd and its dwz file, if they are installed. */
static int add_debug_files(struct packing *packing, int fd, const struct profile_module *module)
{
	const struct profile_archive_options *options = packing->options;
	_cleanup_(release_debug) struct installed_debug debug = { 0 };
	struct error why = { 0 };
	int err = installed_debug__find(packing->parser, fd, module, options->debug_dirs,
					options->n_debug_dirs, &debug, &why);

	if (err) {
		leave_out(packing, module, &why);
		return 0;
	}
	err = add_debug_file(packing, debug.path, module->build_id);
	return err ? err : add_debug_file(packing, debug.alt_path, debug.alt_build_id);
}

/* Whether the path names a file, and by no step up. */
static bool is_plain(const char *path)
{
	const char *part;

	for (part = path + strspn(path, "/"); *part; part += strspn(part, "/")) {
		size_t size = strcspn(part, "/");

		if (size == 2 && !strncmp(part, "..", 2))
			return false;
		part += size;
	}
	return part > path && part[-1] != '/';
}

static int add_module(struct packing *packing, const struct profile_module *module)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	struct error why = { 0 };
	int err;

	/* A path from a data file must not lead out of the unpacked directory. */
	if (!is_plain(module->path))
		error__set(&why, -EINVAL, "%s is no path that a mapped file has", module->path);
	else
		fd = module_file__open(module, packing->options->debug_dirs, &why);
	if (fd < 0) {
		leave_out(packing, module, &why);
		return 0;
	}
	name = entry_name(module);
	if (!name)
		return -ENOMEM;
	err = add_file(packing, name, fd);
	return err ? err : add_debug_files(packing, fd, module);
}

static int write_archive(struct packing *packing, int fd, const struct profile *profile)
{
	struct archive *archive = packing->archive;
	int err = 0;

	if (archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
	    archive_write_add_filter_gzip(archive) != ARCHIVE_OK ||
	    archive_write_set_options(archive, "gzip:compression-level=6,gzip:!timestamp") !=
		    ARCHIVE_OK ||
	    archive_write_open_fd(archive, fd) != ARCHIVE_OK)
		return -EIO;
	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		/* [vdso] and the like are no files; they are named during the recording. */
		if (*profile->modules[i].path == '/')
			err = add_module(packing, &profile->modules[i]);
	}
	if (!err && archive_write_close(archive) != ARCHIVE_OK)
		err = -EIO;
	return err;
}

int profile__archive(const struct profile *profile, const struct profile_archive_options *options,
		     const char *path, struct profile_archive_result *result, struct error *error)
{
	_cleanup_(free_archive) struct archive *archive = archive_write_new();
	_cleanup_(free_parser) struct parser *parser = NULL;
	struct packing packing = { .options = options, .archive = archive };
	_cleanup_(free_ptr) char *temporary = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		temporary = NULL;
	if (!archive || !temporary)
		return error__set(error, -ENOMEM, "cannot write %s: out of memory", path);
	err = parser__new(&parser, error);
	if (err)
		return err;
	packing.parser = parser;
	fd = new_file__create_unique(temporary);
	if (fd < 0)
		return error__set(error, fd, "cannot write %s: %s; write elsewhere with -o", path,
				  strerror(-fd));
	err = write_archive(&packing, fd, profile);
	if (err == -EIO)
		err = fail(error, archive, path);
	else if (err)
		error__set(error, err, "cannot write %s: %s", path, strerror(-err));
	if (!err && rename(temporary, path)) {
		err = -errno;
		error__set(error, err, "cannot write %s: %s; write elsewhere with -o", path,
			   strerror(-err));
	}
	if (err)
		unlink(temporary);
	else
		*result = packing.result;
	return err;
}
