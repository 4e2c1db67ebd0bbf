/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names, files and lines of places in code, from DWARF and ELF symbol tables. */
#ifndef ALLOCPROF_SYMBOLS_H
#define ALLOCPROF_SYMBOLS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct elf_file;
struct profile;
struct symbols;

struct symbols_options {
	/* Where debug files may be, before /usr/lib/debug: DIR/.build-id/ab/cdef.debug,
	 * DIR/<path>[.debug] and DIR/<basename>[.debug]. Borrowed. */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	/* Whether the servers of DEBUGINFOD_URLS are asked for what is not here, when all that is here was
	 * looked up; and how long none of them may send anything before all are given up (0: 5 s). */
	bool debuginfod;
	unsigned int debuginfod_timeout_ms;
	unsigned int threads; /* at the most; 0: as many as there are processors */
	/* The next three are called by the thread that called us, and may be NULL. Places that have
	 * been looked up of @total. */
	void (*progress)(void *context, size_t done, size_t total);
	/* Bytes of @path's debug file that were fetched of @total_bytes (0: neither is known). */
	void (*fetching)(void *context, const char *path, long done_bytes, long total_bytes);
	/* Asked some times a second. True ends the look-up: what a server was asked for is done without,
	 * what is looked up here ends with -EINTR. */
	bool (*stop)(void *context);
	void *context;
};

/* What a place belongs to: the function that was inlined there last first, then the one that it was
 * inlined into, and at the end, alone with inlined = false, the one that has the code. */
struct symbols_line {
	const char *
		symbol; /* as linked, or, of what has no such name, a qualified one; NULL: unknown */
	const char *file; /* NULL: unknown */
	__u32 line;	  /* 0: unknown */
	bool inlined;
};

struct symbols_query {
	__u32 module;
	__u64 vaddr; /* the ELF virtual address itself, not a return address behind it */
};

/* The lines of @query, valid during the call. A negative errno ends the look-up. */
typedef int (*symbols_found_fn)(void *context, const struct symbols_query *query,
				const struct symbols_line *lines, size_t n_lines);

/* @options, which is copied, may be NULL: all zeros. NULL without memory. */
struct symbols *symbols__new(const struct symbols_options *options);
void symbols__free(struct symbols *symbols);

/*
 * Announces the file of module @id (not 0, once each): @fd, which is duplicated, or, where it is -1,
 * @path. @path also tells where to look for the debug file. A file whose build id is not @build_id
 * (lower-case hex; "": unknown) is not used. Nothing is read before a place in it is looked up.
 * 0, -EEXIST, -EINVAL, -ENOMEM or what dup() said.
 */
int symbols__add_module(struct symbols *symbols, __u32 id, int fd, const char *path,
			const char *build_id);

/*
 * Looks up the @n @queries, in any order, and calls @found by this thread for each of which anything
 * is known; for all of one module in order of their addresses. The order of the modules depends on
 * the queries alone. 0, -ENOMEM, -EINTR by stop(), before any call of @found, or what @found returned.
 * Damaged files harm no other module.
 */
int symbols__look_up(struct symbols *symbols, const struct symbols_query *queries, size_t n,
		     symbols_found_fn found, void *context);

/* Opens the file of module @id as code, if it is the one that was announced. 0, -ENOENT, -ENOMEM. */
int symbols__open_code(const struct symbols *symbols, __u32 id, struct elf_file **out);

/* Where the names of module @id came from, or why it has none: one sentence without a full stop. ""
 * before anything was looked up in it. */
const char *symbols__module_text(const struct symbols *symbols, __u32 id);

/* Why the servers were not asked for all that they may have: the same. "" where they were. */
const char *symbols__fetch_problem(const struct symbols *symbols);

/* Gives every frame that has no lines yet those that are known, its functions by the linker's names
 * (profile__demangle() does the rest), and every module of such a frame its text. 0, -ENOMEM, or -EINTR where it was
 * stopped, and nothing is named. */
int profile__symbolize(struct profile *profile, struct symbols *symbols);

#endif
