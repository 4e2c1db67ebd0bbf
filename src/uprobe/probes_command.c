// SPDX-License-Identifier: GPL-3.0-or-later
/* Probes the files that a command will use: its program, libraries, and those named with --expect. */
#include "probes_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "cleanup.h"
#include "command_path.h"
#include "error.h"
#include "file.h"
#include "libraries.h"
#include "program_kind.h"
#include "definitions.h"
#include "translator.h"

static bool has_definition(const struct probes *probes, int fd, const char *path)
{
	const struct definitions *definitions = probes->options.definitions;

	for (size_t i = 0; definitions && i < definitions->n; i++) {
		struct allocator *allocator;

		if (allocator__parse_definition(probes->options.parser, fd, path,
						&definitions->list[i], &allocator, NULL))
			continue;
		allocator__free(allocator);
		return true;
	}
	return false;
}

static bool has_allocator(const struct probes *probes, int fd, const char *path)
{
	struct allocator *allocator;
	bool is;

	if (allocator__parse(probes->options.parser, fd, path, &allocator, NULL))
		return false;
	is = !allocator->is_wrapper;
	allocator__free(allocator);
	return is;
}

int probes__isolate(struct probes *probes, int fd, const char *path)
{
	const struct probes_options *options = &probes->options;
	int copy;

	if (!options->isolate)
		return fd;
	copy = options->find_isolated(fd, path, options->context);
	if (copy == fd && (has_allocator(probes, fd, path) || has_definition(probes, fd, path) ||
			   options->is_wanted(fd, path, options->context)))
		copy = options->isolate(fd, path, options->context);
	return copy;
}

void probes__end_copies(struct probes *probes)
{
	probes->options.isolate = NULL;
}

bool probes__has_copy(const struct probes *probes, int fd)
{
	const struct probes_options *options = &probes->options;
	int copy = options->find_isolated(fd, NULL, options->context);
	struct stat of_file, of_copy;

	return copy != fd && !fstat(fd, &of_file) && !fstat(copy, &of_copy) &&
	       (of_file.st_ino != of_copy.st_ino || of_file.st_dev != of_copy.st_dev);
}

/* dl_iterate_phdr() callback: finds the libc that allocprof itself uses, which is the system's. One that is linked in has no
 * name. */
static int find_own_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	ElfW(Addr) address = (ElfW(Addr))(uintptr_t)gnu_get_libc_version;
	const char **path = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD &&
		    address - info->dlpi_addr - header->p_vaddr < header->p_memsz) {
			*path = info->dlpi_name;
			return 1;
		}
	}
	return 0;
}

/* Probes the system's C library. Returns 0 also if the library is probed already, or could not be
 * read, which the report says. */
static int add_system_libc(struct probes *probes, struct error *error)
{
	_cleanup_(free_ptr) char *found = NULL;
	const char *own = "";
	int err = 0;

	dl_iterate_phdr(find_own_libc, &own);
	if (!*own)
		err = libraries__find_libc(&found);
	/* Where there is none, no program uses one. */
	if (!err)
		err = probes__add_path(probes, *own ? own : found, error);
	return probes__is_failure(err) ? err : 0;
}

bool probes__is_failure(int err)
{
	return err && err != -ENOENT && err != -EEXIST;
}

static int open_command(const char *argv0, char **path, struct error *error)
{
	_cleanup_(free_ptr) char *found = NULL;
	int err = command_path__find(argv0, getenv("PATH"), &found);
	bool is_path = strchr(argv0, '/'), is_found;
	struct stat st;

	is_found = is_path && !stat(argv0, &st);
	if (err == -EACCES && is_path && !is_found)
		return error__set(
			error, err,
			"cannot run '%s': its directory may not be searched (FUSE and NFS "
			"may refuse root); copy the program to where allocprof may read it",
			argv0);
	if (err == -EACCES && is_found && S_ISDIR(st.st_mode))
		return error__set(error, err,
				  "cannot run '%s': it is a directory; name a program in it",
				  argv0);
	if (err == -EACCES)
		return error__set(
			error, err,
			"cannot run '%s': it is not an executable file; chmod +x it, or name "
			"the program that runs it",
			argv0);
	if (err)
		return error__set(error, err,
				  "cannot run '%s': %s; check the spelling, or give its "
				  "path",
				  argv0,
				  strchr(argv0, '/') ? "there is no such file"
						     : "it is in no directory of PATH");
	/* If it is neither ELF nor a script, execve(2) will decide. */
	if (command_path__elf(found, getenv("PATH"), path))
		return -ENOEXEC;
	return 0;
}

struct listing {
	struct probes *probes;
	struct error *error;
	int err;
};

static void add_listed(const char *path, void *context)
{
	struct listing *listing = context;
	int err = probes__add_path(listing->probes, path, listing->error);

	if (probes__is_failure(err) && err != -ENOEXEC && !listing->err)
		listing->err = err;
}

/* Probes the allocators of the program at @path, its dynamic linker and its libraries. */
static int add_program(struct probes *probes, const char *path, char *const argv[],
		       const struct libraries_environment *changes, struct program_kind *kind,
		       struct error *error)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct listing listing = { .probes = probes, .error = error };
	int err;

	*kind = (struct program_kind){ 0 };
	if (fd < 0)
		return 0;
	err = program_kind__parse(probes->options.parser, fd, path, kind);
	/* If the file cannot be read safely, or is for another machine, its entry in the list of
	 * probed files says so. */
	if (err == -ENOTSUP)
		return probes__add_file(probes, fd, path, error);
	if (err && err != -ECHILD)
		return 0;
	err = probes__add_file(probes, fd, path, error);
	if (!probes__is_failure(err) && kind->interpreter[0])
		err = probes__add_path(probes, kind->interpreter, error);
	if (!probes__is_failure(err)) {
		if (kind->interpreter[0])
			libraries__list(probes->options.parser, kind->interpreter, path, changes,
					add_listed, &listing);
		else
			libraries__list_started(probes->options.parser, path, argv, add_listed,
						&listing);
		err = listing.err;
	}
	return probes__is_failure(err) ? err : 0;
}

static int open_program(const char *argv0, char **path, struct error *error)
{
	int err = open_command(argv0, path, error);

	if (!err)
		err = translator__refuse(argv0, error);
	if (!err)
		err = translator__refuse(*path, error);
	return err;
}

/* Adds commands that @argv will execute. Errors are ignored, since execve(2) reports them. */
static void add_inner_commands(struct probes *probes, char *const argv[])
{
	struct inner_command command = { .argv = argv };

	while (inner_command__find(&command)) {
		_cleanup_(free_ptr) char *path = NULL;
		struct program_kind kind;
		struct error error = { 0 };

		if (!open_program(command.argv[0], &path, &error))
			add_program(probes, path, command.argv, &command.changes, &kind, &error);
	}
}

#define COUNT_ITS_COMMANDS "; --engine=preload counts the programs that it runs"

int probes__add_command(struct probes *probes, char *const argv[], struct error *error)
{
	_cleanup_(free_ptr) char *path = NULL;
	struct program_kind kind;
	bool has_nothing;
	int err;

	err = open_program(argv[0], &path, error);
	if (err == -ENOEXEC)
		return add_system_libc(probes, error);
	if (!err)
		err = add_program(probes, path, argv, NULL, &kind, error);
	if (err)
		return err;
	add_inner_commands(probes, argv);
	/* Mappings and page faults are counted for every kind of program. */
	has_nothing = kind.is_static && !probes__n_files(probes) &&
		      !definitions__count_in_all(probes->options.definitions);
	if (has_nothing && kind.is_go)
		return error__set(error, -ENOTSUP,
				  "%s is a Go program, " GO_HAS_NO_MALLOC COUNT_ITS_COMMANDS, path);
	if (has_nothing)
		return error__set(
			error, -ENOTSUP,
			"%s is a static executable without a malloc that can be found by "
			"name; link it dynamically, or leave its symbols in (no strip)" COUNT_ITS_COMMANDS,
			path);
	/* The system's C library is probed also for a static program, which may run others. */
	err = add_system_libc(probes, error);
	return kind.is_static ? 0 : err;
}

int probes__add_program(struct probes *probes, const char *path, struct error *error)
{
	char *argv[] = { (char *)path, NULL };
	_cleanup_(free_ptr) char *program = NULL;
	struct program_kind kind;
	int err = open_program(path, &program, error);

	if (!err)
		err = add_program(probes, program, argv, NULL, &kind, error);
	if (err)
		return err;
	if (!kind.is_static)
		return 0;
	/* Needed for the programs that it executes. */
	return add_system_libc(probes, error);
}

int probes__add_expected(struct probes *probes, const char *name, struct error *error)
{
	char *argv[] = { (char *)name, NULL };
	int err = probes__add_command(probes, argv, error);

	/* A library need not be executable, and a static program need not have a named
	 * allocator. */
	if (err == -EACCES && strchr(name, '/')) {
		err = probes__add_path(probes, name, error);
		return probes__is_failure(err) ? err : 0;
	}
	return err == -ENOTSUP ? 0 : err;
}

int probes__add_named_files(struct probes *probes, struct error *error)
{
	const struct definitions *definitions = probes->options.definitions;

	for (size_t i = 0; definitions && i < definitions->n; i++)
		for (size_t j = 0; j < definitions->list[i].n_modules; j++) {
			const char *path = definitions->list[i].modules[j];
			int err;

			if (!strchr(path, '/'))
				continue;
			err = probes__add_path(probes, path, error);
			if (err == -ENOENT || err == -EACCES) {
				if (access(path, R_OK))
					return error__set(error, err,
							  "cannot open %s, where %s is looked for: "
							  "%s",
							  path, definitions->list[i].name,
							  strerror(errno));
			}
			if (probes__is_failure(err) && err != -ENOEXEC)
				return err;
		}
	return 0;
}

int probes__add_library(struct probes *probes, const char *path, struct error *error)
{
	int err = probes__add_path(probes, path, error);

	if (err == -ENOENT)
		return error__set(
			error, -ENOTSUP,
			"%s defines no malloc and free; name a program, or the library that "
			"holds its allocator",
			path);
	return err;
}
