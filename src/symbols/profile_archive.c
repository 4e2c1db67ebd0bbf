// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_library.h"
#include "cleanup.h"
#include "debug_file.h"
#include "elf_headers.h"
#include "error.h"
#include "file.h"
#include "module_file.h"
#include "new_file.h"
#include "parser.h"
#include "path.h"
#include "profile.h"
#include "worker.h"

struct installed_debug {
	char *path;	/* the separate debug file; NULL: none is installed, or none is needed */
	char *alt_path; /* dwz's file to which the debug information refers; NULL: none */
	char alt_build_id[BUILD_ID_SIZE]; /* lower-case hex */
};

static void installed_debug__release(struct installed_debug *debug);

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

/* Runs in the worker: fills @found, whose paths are those of @debug and @alt. */
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
	if (!debug_file__alt_name(dwarf, &name, found->alt_build_id)) {
		found->alt_build_id[0] = '\0';
		return 0;
	}
	err = debug_file__find_alt(search, dwarf, name, found->alt_build_id, alt, NULL);
	found->alt_path = err ? NULL : alt->path;
	if (err)
		found->alt_build_id[0] = '\0';
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

/* Runs in the worker. The parameters come from the parent, so they are trusted. */
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

/* Returns whether a directory can have files: below one whose own path is too long nothing can be
 * opened. */
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

/*
 * Finds the debug files of @module, whose ELF file is @fd, which stays the caller's. @dirs are
 * searched first. Returns 0, with @out, which the caller releases; -ECHILD if the file could not
 * be read safely; or another negative errno; in both cases with @error, which says that it is
 * about the debug files of @module.
 */
static int installed_debug__find(struct parser *parser, int fd, const struct profile_module *module,
				 const char *const *dirs, size_t n_dirs,
				 struct installed_debug *out, struct error *error)
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

/* Releases @debug, which may be zeroed. */
static void installed_debug__release(struct installed_debug *debug)
{
	free(debug->path);
	free(debug->alt_path);
	*debug = (struct installed_debug){ 0 };
}

#define COPY_BYTES 65536
/* Least number of hex digits of a build id by which debug files are looked for. */
#define MIN_ID 6

struct packing {
	const struct profile_archive_options *options;
	const struct profile *profile;
	struct archive_library library;
	struct archive *archive;
	struct parser *parser;
	struct profile_archive_result result;
};

static void release_packing(struct packing *packing)
{
	parser__free(packing->parser);
	if (packing->archive)
		packing->library.archive_write_free(packing->archive);
}

static int fail(struct error *error, const struct packing *packing, const char *path)
{
	int number = packing->library.archive_errno(packing->archive);
	int err = number > 0 ? -number : -EIO;

	return error__set(error, err, "cannot write %s: %s; write elsewhere with -o", path,
			  strerror(-err));
}

/* Writes exactly @size bytes. *@read_err is 0, or says why zeros were written in place of the
 * file's end. */
static int copy(struct packing *packing, int fd, __u64 size, int *read_err)
{
	_cleanup_(free_ptr) char *buffer = calloc(1, COPY_BYTES);
	ssize_t n;

	if (!buffer)
		return -ENOMEM;
	*read_err = 0;
	for (__u64 at = 0; at < size; at += n) {
		size_t wanted = size - at < COPY_BYTES ? size - at : COPY_BYTES;

		n = *read_err ? 0 : pread(fd, buffer, wanted, at);
		if (n <= 0) {
			if (!*read_err)
				*read_err = n ? -errno : -ENODATA;
			memset(buffer, 0, wanted);
			n = wanted;
		}
		if (packing->library.archive_write_data(packing->archive, buffer, n) != n)
			return -EIO;
	}
	return 0;
}

static int write_header(struct packing *packing, const char *name, const struct stat *st,
			__u64 size_bytes)
{
	const struct archive_library *library = &packing->library;
	struct archive_entry *entry = library->archive_entry_new();
	int written;

	if (!entry)
		return -ENOMEM;
	library->archive_entry_set_pathname(entry, name);
	library->archive_entry_set_size(entry, size_bytes);
	library->archive_entry_set_filetype(entry, AE_IFREG);
	library->archive_entry_set_perm(entry, 0644);
	library->archive_entry_set_mtime(entry, st->st_mtime, 0);
	written = library->archive_write_header(packing->archive, entry);
	library->archive_entry_free(entry);
	return written == ARCHIVE_OK ? 0 : -EIO;
}

static void leave_out(struct packing *packing, const struct profile_module *module,
		      const struct error *why)
{
	packing->result.missing++;
	packing->options->missing(module->path, why->text, packing->options->context);
}

/* Adds the data file as a whole or not at all: a part of it would be read as a damaged one. */
static int add_data(struct packing *packing)
{
	const char *path = packing->options->data_path;
	_cleanup_(close_fd) int fd = path ? regular_file__open(path) : -1;
	int err, read_err = 0;
	struct stat st;

	if (!path)
		return 0;
	if (fd < 0 || fstat(fd, &st))
		return fd < 0 ? fd : -errno;
	err = write_header(packing, path__name(path), &st, st.st_size);
	if (!err)
		err = copy(packing, fd, st.st_size, &read_err);
	return err ? err : read_err;
}

/* Adds the file @fd, of @module. */
static int add_file(struct packing *packing, const char *name, int fd,
		    const struct profile_module *module)
{
	struct error why;
	struct stat st;
	int err, read_err;

	if (fstat(fd, &st))
		return -errno;
	err = write_header(packing, name, &st, st.st_size);
	if (!err)
		err = copy(packing, fd, st.st_size, &read_err);
	if (err)
		return err;
	if (!read_err) {
		packing->result.files++;
		packing->result.size_bytes += st.st_size;
		return 0;
	}
	error__set(&why, read_err, "%s cannot be read to its end: %s", name,
		   read_err == -ENODATA ? "it has become shorter" : strerror(-read_err));
	leave_out(packing, module, &why);
	/* When the archive is unpacked, a later member of a name replaces an earlier one. */
	return write_header(packing, name, &st, 0);
}

/* Returns the name of a module's file in the archive; the caller frees it. */
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

enum match {
	MATCH_NONE,
	MATCH_BUILD_ID,
	MATCH_CHECKSUM
};

/* The properties that a debug file for a module must have. A worker finds the file, and is not trusted. */
struct wanted_debug {
	const struct profile_module *module;
	const char *path;     /* path; NULL: none was found */
	const char *build_id; /* "": none */
	int linked_from; /* the module's file, if its .gnu_debuglink has the checksum; else -1 */
};

static enum match compare(const struct wanted_debug *wanted, int fd)
{
	struct elf_headers *elf;
	bool have_ids, are_same;
	__u32 checksum;

	if (elf_headers__read_any(fd, &elf))
		return MATCH_NONE;
	have_ids = strlen(wanted->build_id) >= MIN_ID && *elf_headers__build_id(elf);
	are_same = !strcmp(elf_headers__build_id(elf), wanted->build_id);
	elf_headers__free(elf);
	if (have_ids)
		return are_same ? MATCH_BUILD_ID : MATCH_NONE;
	if (wanted->linked_from < 0 ||
	    elf_headers__debuglink_checksum(wanted->linked_from, &checksum) ||
	    !debug_file__has_checksum(fd, checksum))
		return MATCH_NONE;
	return MATCH_CHECKSUM;
}

/* Returns the name in the archive, which the caller frees. A file without a build id of its own is
 * found by the module's path and the checksum. */
static char *debug_entry_name(const struct wanted_debug *wanted, enum match match)
{
	_cleanup_(free_ptr) char *id = module_file__build_id_name(wanted->build_id);
	const char *path = wanted->module->path;
	char *name = NULL;
	int len;

	if (match == MATCH_BUILD_ID && !id)
		return NULL;
	len = match == MATCH_BUILD_ID ? asprintf(&name, ".build-id/%s.debug", id)
				      : asprintf(&name, "%s.debug", path + strspn(path, "/"));
	return len < 0 ? NULL : name;
}

static void refuse(struct packing *packing, const struct wanted_debug *wanted, int fd)
{
	const char *reason = "it has neither the build id nor the checksum that it should have";
	struct error why;

	if (fd < 0)
		reason = fd == -ENOEXEC ? "it is no ELF file" : strerror(-fd);
	error__set(&why, 0, "the debug file %s of %s: %s", wanted->path, wanted->module->path,
		   reason);
	leave_out(packing, wanted->module, &why);
}

static int add_debug_file(struct packing *packing, const struct wanted_debug *wanted)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	enum match found;

	if (!wanted->path)
		return 0;
	fd = worker__open_file(wanted->path);
	found = fd < 0 ? MATCH_NONE : compare(wanted, fd);
	if (found == MATCH_NONE) {
		refuse(packing, wanted, fd);
		return 0;
	}
	name = debug_entry_name(wanted, found);
	return name ? add_file(packing, name, fd, wanted->module) : -ENOMEM;
}

/* Adds the debug file of the ELF file behind @fd and its dwz file, if they are installed. */
static int add_debug_files(struct packing *packing, int fd, const struct profile_module *module)
{
	const struct profile_archive_options *options = packing->options;
	_cleanup_(release_debug) struct installed_debug debug = { 0 };
	struct wanted_debug wanted = { module, NULL, module->build_id, fd };
	struct wanted_debug common = { module, NULL, NULL, -1 };
	struct error why = { 0 };
	int err = installed_debug__find(packing->parser, fd, module, options->debug_dirs,
					options->n_debug_dirs, &debug, &why);

	if (err) {
		leave_out(packing, module, &why);
		return 0;
	}
	wanted.path = debug.path;
	common.path = debug.alt_path;
	common.build_id = debug.alt_build_id;
	err = add_debug_file(packing, &wanted);
	return err ? err : add_debug_file(packing, &common);
}

/* Returns whether the path names a file, without "..". */
static bool is_plain(const char *path)
{
	return *path && path[strlen(path) - 1] != '/' && !path__has_parent(path);
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
		fd = module_file__open(packing->profile, module, packing->options->debug_dirs,
				       &why);
	if (fd < 0) {
		leave_out(packing, module, &why);
		return 0;
	}
	name = entry_name(module);
	if (!name)
		return -ENOMEM;
	err = add_file(packing, name, fd, module);
	return err ? err : add_debug_files(packing, fd, module);
}

static int write_archive(struct packing *packing, int fd, const struct profile *profile)
{
	const struct archive_library *library = &packing->library;
	struct archive *archive = packing->archive;
	int err = 0;

	/* Pipes and devices get no zeros after the end, either. */
	if (library->archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
	    library->archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
	    library->archive_write_add_filter_gzip(archive) != ARCHIVE_OK ||
	    library->archive_write_set_options(
		    archive, "gzip:compression-level=6,gzip:!timestamp") != ARCHIVE_OK ||
	    library->archive_write_open_fd(archive, fd) != ARCHIVE_OK)
		return -EIO;
	err = add_data(packing);
	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		/* [vdso] and the like are no files; they are named during the recording. */
		if (*profile->modules[i].path == '/')
			err = add_module(packing, &profile->modules[i]);
	}
	if (!err && library->archive_write_close(archive) != ARCHIVE_OK)
		err = -EIO;
	return err;
}

static int write_to(struct packing *packing, int fd, const struct profile *profile,
		    const char *path, struct error *error)
{
	int err = write_archive(packing, fd, profile);

	if (err == -EIO)
		return fail(error, packing, path);
	return err ? error__set(error, err, "cannot write %s: %s", path, strerror(-err)) : 0;
}

static int fail_to_open(struct error *error, int err, const char *path)
{
	return error__set(error, err, "cannot write %s: %s; write elsewhere with -o", path,
			  new_file__reason(err));
}

static int write_file(struct packing *packing, struct new_file *file, const struct profile *profile,
		      const char *path, struct error *error)
{
	int err = write_to(packing, file->fd, profile, path, error);

	if (err)
		return err;
	err = new_file__finish(file);
	return err ? fail_to_open(error, err, path) : 0;
}

/* Writes into a pipe, a device, or an open file. */
static int write_through(struct packing *packing, const struct profile *profile, const char *path,
			 struct error *error)
{
	_cleanup_(close_fd) int fd = new_file__open_existing(path);

	if (fd < 0)
		return fail_to_open(error, fd, path);
	/* Pipes and devices cannot be truncated, and need not be. */
	if (ftruncate(fd, 0) && errno != EINVAL)
		return fail_to_open(error, -errno, path);
	return write_to(packing, fd, profile, path, error);
}

int profile__archive(const struct profile *profile, const struct profile_archive_options *options,
		     const char *path, struct profile_archive_result *result, struct error *error)
{
	_cleanup_(release_packing) struct packing packing = { .options = options,
							      .profile = profile };
	struct new_file file = NEW_FILE_NONE;
	int err = archive_library__open(&packing.library, error);

	if (err)
		return err;
	packing.archive = packing.library.archive_write_new();
	if (!packing.archive)
		return error__set(error, -ENOMEM, "cannot write %s: out of memory", path);
	err = parser__new(&packing.parser, error);
	if (err)
		return err;
	err = new_file__begin(&file, path);
	if (err == -EINVAL) {
		err = write_through(&packing, profile, path, error);
	} else if (err) {
		return fail_to_open(error, err, path);
	} else {
		err = write_file(&packing, &file, profile, path, error);
		new_file__release(&file);
	}
	if (!err)
		*result = packing.result;
	return err;
}
