// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols_module.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug_file.h"
#include "error.h"
#include "file.h"
#include "go_table.h"
#include "mapped_file.h"
#include "symbol_table.h"

#define TIMEOUT_MS 120000

/* Open files of a job; @table borrows their names. */
struct name_sources {
	struct debug_file file, debug, alt;
	struct mini_debug *mini;
	struct symbol_table *table;
	char build_id[BUILD_ID_SIZE];
	const char *symbols;  /* source of @table; NULL: none */
	struct error problem; /* why a better source was not used */
};

static void close_sources(struct name_sources *sources)
{
	symbol_table__free(sources->table);
	mini_debug__free(sources->mini);
	debug_file__close(&sources->alt);
	debug_file__close(&sources->debug);
	debug_file__close(&sources->file);
}

/* Opens the module's file. Returns -ENOENT, with the problem set, if there is no such file or it
 * has another build id. */
static int open_file(const struct module_job *job, struct name_sources *sources)
{
	int fd, err;

	/* A mapping without a file has no absolute path. */
	if (job->fd >= 0)
		fd = fcntl(job->fd, F_DUPFD_CLOEXEC, 0);
	else
		fd = *job->path == '/' ? regular_file__open(job->path) : -1;
	if (fd < 0)
		return error__set(&sources->problem, -ENOENT, "%s cannot be read", job->path);
	err = debug_file__open(fd, job->path, &sources->file, &sources->problem);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	debug_file__build_id(sources->file.elf, sources->build_id);
	if (*job->build_id && strcmp(job->build_id, sources->build_id))
		return error__set(&sources->problem, -ENOENT,
				  "%s is another file by now: its build id is %s, not %s",
				  job->path, *sources->build_id ? sources->build_id : "missing",
				  job->build_id);
	return 0;
}

static int fetch(struct module_job *job, const char *build_id, struct debug_file *out,
		 struct error *problem)
{
	struct debug_file file = DEBUG_FILE_NONE;
	char has[BUILD_ID_SIZE], path[PATH_MAX];
	int fd, err;

	if (!*build_id)
		return -ENOENT;
	if (!job->with_servers) {
		job->wants_file = true;
		return -ENOENT;
	}
	fd = job->fetch(build_id);
	if (fd < 0 && fd != -ENOENT && !problem->text[0])
		error__set(problem, 0, "no debug file from the debuginfod servers: %s",
			   strerror(-fd));
	if (fd < 0)
		return -ENOENT;
	mapped_file__path(fd, path, sizeof(path));
	err = debug_file__open(fd, path, &file, problem);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	debug_file__build_id(file.elf, has);
	if (strcmp(has, build_id)) {
		error__set(problem, 0, "%s is not used: its build id is %s, not %s", path, has,
			   build_id);
		debug_file__close(&file);
		return -ENOENT;
	}
	*out = file;
	return 0;
}

/* Finds the file with the DWARF; *@dwarf is NULL if no file has any. Returns 0 or -ENOMEM. */
static int find_dwarf(struct module_job *job, struct name_sources *sources,
		      struct debug_file **dwarf)
{
	const struct debug_search search = {
		.dirs = job->debug_dirs,
		.n_dirs = job->n_debug_dirs,
		.elf = sources->file.elf,
		.fd = sources->file.fd,
		.path = job->path,
		.build_id = sources->build_id,
	};
	char alt_id[BUILD_ID_SIZE];
	const char *alt_name;
	int err;

	*dwarf = &sources->file;
	if (!debug_file__has_dwarf(sources->file.elf)) {
		err = debug_file__find(&search, &sources->debug, &sources->problem);
		if (err == -ENOENT)
			err = fetch(job, sources->build_id, &sources->debug, &sources->problem);
		*dwarf = err ? NULL : &sources->debug;
		if (err)
			return err == -ENOENT ? 0 : err;
	}
	if (!debug_file__has_dwarf((*dwarf)->elf)) {
		*dwarf = NULL;
		return 0;
	}
	if (!debug_file__alt_name(*dwarf, &alt_name, alt_id))
		return 0;
	err = debug_file__find_alt(&search, *dwarf, alt_name, alt_id, &sources->alt,
				   &sources->problem);
	if (err == -ENOENT)
		err = fetch(job, alt_id, &sources->alt, &sources->problem);
	if (err != -ENOENT)
		return err;
	/* The file is not used: most names would be missing, and libdw would open any file at that
	 * path. */
	if (!sources->problem.text[0])
		error__set(
			&sources->problem, 0,
			"the debug information of %s needs %s with build id %s, which is not here",
			(*dwarf)->path, alt_name, alt_id);
	*dwarf = NULL;
	return 0;
}

/* Reads function names of Go's runtime, which stripped Go programs still have. */
static int read_go_table(struct name_sources *sources)
{
	struct go_function function;
	struct go_table table;
	int err = 0;

	if (go_table__open(sources->file.elf, &table))
		return 0;
	for (__u32 i = 0; i < table.count && !err; i++) {
		if (!go_table__function(&table, i, &function))
			continue;
		err = symbol_table__add_function(
			sources->table, function.lo, function.hi,
			(struct symbol_name){ function.name, function.name_size });
	}
	sources->symbols = "the table of Go's runtime";
	return err;
}

static int read_symbols(struct name_sources *sources)
{
	bool found = false;
	int err = symbol_table__add_section(sources->table, sources->file.elf, SHT_SYMTAB, &found);

	if (found)
		sources->symbols = "its symbol table";
	if (!err && !found && sources->debug.elf) {
		err = symbol_table__add_section(sources->table, sources->debug.elf, SHT_SYMTAB,
						&found);
		if (found)
			sources->symbols = "the debug file's symbol table";
	}
	if (!err && !found) {
		err = mini_debug__add(&sources->file, sources->table, &sources->mini);
		if (sources->mini)
			sources->symbols = "its .gnu_debugdata and dynamic symbol table";
		if (!err)
			err = symbol_table__add_section(sources->table, sources->file.elf,
							SHT_DYNSYM, &found);
		if (found && !sources->symbols)
			sources->symbols = "its dynamic symbol table";
		if (!err)
			err = read_go_table(sources);
	}
	return err ? err : symbol_table__finish(sources->table);
}

/* Adds a line without file for addresses that only the symbol table knows. */
static int name_rest(struct module_job *job, const struct symbol_table *table)
{
	for (size_t i = 0; i < job->n_addresses; i++) {
		struct address *address = &job->addresses[i];
		struct symbol_name name;
		struct address_line *line;

		if (address->n_lines)
			continue;
		name = symbol_table__find(table, address->vaddr);
		if (!name.text)
			continue;
		line = arena__alloc(&job->arena, sizeof(*line));
		if (!line)
			return -ENOMEM;
		line->symbol = arena__string(&job->arena, name.text, name.size);
		if (!line->symbol)
			return -ENOMEM;
		address->lines = line;
		address->n_lines = 1;
	}
	return 0;
}

static void write_text(struct module_job *job, const struct name_sources *sources,
		       const struct debug_file *dwarf)
{
	const char *problem = sources->problem.text;
	char from[MODULE_TEXT_SIZE - sizeof(sources->problem.text) - 2];

	if (dwarf == &sources->file)
		snprintf(from, sizeof(from), "its DWARF");
	else if (dwarf)
		snprintf(from, sizeof(from), "the DWARF of %.900s", dwarf->path);
	else
		snprintf(from, sizeof(from), "%s",
			 sources->symbols ? sources->symbols : "it has no symbols");
	snprintf(job->text, sizeof(job->text), "%s%s%s", from, *problem ? "; " : "", problem);
}

int module_job__run(struct module_job *job)
{
	struct name_sources sources = {
		.file = DEBUG_FILE_NONE,
		.debug = DEBUG_FILE_NONE,
		.alt = DEBUG_FILE_NONE,
	};
	struct debug_file *dwarf = NULL;
	int err = open_file(job, &sources);

	if (err == -ENOENT) {
		snprintf(job->text, sizeof(job->text), "%s", sources.problem.text);
		close_sources(&sources);
		return 0;
	}
	if (!err)
		sources.table = symbol_table__new();
	if (!err && !sources.table)
		err = -ENOMEM;
	if (!err)
		err = find_dwarf(job, &sources, &dwarf);
	if (!err)
		err = read_symbols(&sources);
	if (!err && dwarf) {
		const struct dwarf_addresses_input input = {
			.file = dwarf,
			.alt = sources.alt.elf ? &sources.alt : NULL,
			.table = sources.table,
			.arena = &job->arena,
			.progress = job->progress,
		};

		err = dwarf_addresses__find(&input, job->addresses, job->n_addresses,
					    &sources.problem);
		if (err == -ENOEXEC) {
			dwarf = NULL;
			err = 0;
		}
	}
	if (!err)
		err = name_rest(job, sources.table);
	if (!err)
		write_text(job, &sources, dwarf);
	close_sources(&sources);
	return err;
}

void module_job__release(struct module_job *job)
{
	arena__release(&job->arena);
	free(job->addresses);
	job->addresses = NULL;
	job->n_addresses = 0;
}

unsigned int module_job__timeout_ms(void)
{
	return TIMEOUT_MS;
}
