/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks up functions, files and lines of code addresses in DWARF and ELF symbol tables. */
#ifndef ALLOCPROF_SYMBOLS_H
#define ALLOCPROF_SYMBOLS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct elf_file;
struct profile;
struct symbols;

struct symbols_options {
	/* Directories searched before /usr/lib/debug: DIR/.build-id/ab/cdef.debug,
	 * DIR/<path>[.debug] and DIR/<basename>[.debug]. Borrowed. */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	/* @debuginfod: debuginfod servers are queried, after all local files, for files that are not
	 * installed. @debuginfod_timeout_ms: they are given up after so long without data (0: 5 s). */
	bool debuginfod;
	unsigned int debuginfod_timeout_ms;
	unsigned int workers; /* maximum of processes; 0: the number of processors */
	/* The callbacks below may be NULL. @done of @total addresses have been looked up. */
	void (*progress)(void *context, size_t done, size_t total);
	/* Reports the progress of the download of @path's debug file (0 and 0: unknown). */
	void (*fetching)(void *context, const char *path, long done_bytes, long total_bytes);
	/* Called some times a second. If it returns true, a download is given up, and a look-up in
	 * local files ends with -EINTR. */
	bool (*stop)(void *context);
	void *context;
};

/* A function at an address: inlined functions from the innermost outwards, then, with inlined =
 * false, the function that contains the code. */
struct symbols_line {
	const char *symbol; /* linker name, else a qualified name; NULL: unknown */
	const char *file;   /* NULL: unknown */
	__u32 line;	    /* 0: unknown */
	bool inlined;
};

struct symbols_query {
	__u32 module;
	__u64 vaddr; /* ELF virtual address of the instruction, not a return address */
};

/* Called with the lines of @query, valid during the call. A negative errno ends the look-up. */
typedef int (*symbols_found_fn)(void *context, const struct symbols_query *query,
				const struct symbols_line *lines, size_t n_lines);

/* Makes a look-up with a copy of @options, which may be NULL: all zeros. Returns NULL if there is
 * no memory. */
struct symbols *symbols__new(const struct symbols_options *options);
void symbols__free(struct symbols *symbols);

/*
 * Adds the file of module @id (not 0, once each): @fd, which is duplicated, or, if that is -1,
 * @path, which also tells where its debug file may be. A file with another build id than @build_id
 * (lower-case hex; "": unknown) is not used. The file is read on the first look-up. Returns 0,
 * -EEXIST, -EINVAL, -ENOMEM or the error of dup().
 */
int symbols__add_module(struct symbols *symbols, __u32 id, int fd, const char *path,
			const char *build_id);

/*
 * Looks up @n @queries, which may be in any order, and calls @found in this thread for each one
 * with a result, those of a module in order of address. The order of modules depends only on the
 * queries. Returns 0, -ENOMEM, -EINTR if stop() returned true (before any call of @found), or the
 * error of @found. Files are read by workers (worker.h): what a damaged file does to its reader
 * affects only its own module.
 */
int symbols__look_up(struct symbols *symbols, const struct symbols_query *queries, size_t n,
		     symbols_found_fn found, void *context);

/* Opens the file of module @id, which the caller has to check by symbols__is_file(). Returns a
 * descriptor, -ENOENT or the error of open(). */
int symbols__open_file(const struct symbols *symbols, __u32 id);
/* Returns whether the file has the build id of module @id. */
bool symbols__is_file(const struct symbols *symbols, __u32 id, const struct elf_file *elf);

/* Returns the source of module @id's names, or why it has none: a sentence without full stop. ""
 * before a look-up. */
const char *symbols__module_text(const struct symbols *symbols, __u32 id);

/* Returns whether it has no names because the process that read its file failed; the text says
 * how. */
bool symbols__is_unread(const struct symbols *symbols, __u32 id);

/* Returns why servers were not queried for all files, as such a sentence; "" if they were. */
const char *symbols__fetch_problem(const struct symbols *symbols);

/*
 * Sets the lines of all frames that have none, with mangled names, which profile__demangle()
 * demangles, and the text of their modules. Returns 0, -ENOMEM, or -EINTR if it was stopped, with
 * nothing changed.
 */
int profile__symbolize(struct profile *profile, struct symbols *symbols);

/* Returns whether the environment names debuginfod servers, which symbols_options.debuginfod would
 * query. */
bool symbols__have_servers(void);

#endif
