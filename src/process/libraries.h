/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The libraries that a program will start with, as its dynamic linker will find them. */
#ifndef ALLOCPROF_LIBRARIES_H
#define ALLOCPROF_LIBRARIES_H

struct linker_cache;
struct parser;

/* Reads /etc/ld.so.cache, in which ldconfig(8) lists the libraries of a system for glibc's dynamic linker. */

/* Reads the cache at @path, whose content is not trusted. -ENOENT, -EINVAL: none in a known format; -EFBIG. */
int linker_cache__open(const char *path, struct linker_cache **out);
/* Accepts NULL. */
void linker_cache__free(struct linker_cache *cache);

/* The path of the library @name that this processor should use, owned by @cache; NULL if there is none.
 * Accepts NULL. */
const char *linker_cache__find(const struct linker_cache *cache, const char *name);

/* Lists the shared libraries that a program will start with, as its dynamic linker will find them. Files are
 * read; none is executed. */

/* Variables that the program will have in place of this process's; NULL: the same. */
struct libraries_environment {
	const char *library_path; /* LD_LIBRARY_PATH */
	const char *preload;	  /* LD_PRELOAD */
};

/*
 * Calls @fn with the path of each library that @program will be started with in this environment
 * (LD_LIBRARY_PATH, LD_PRELOAD, RUNPATH), but for @changes, which may be NULL, by the dynamic linker @interpreter,
 * glibc's or musl's: -ENOTSUP for others. @parser reads the files. The list is a hint that saves time and may be
 * incomplete. 0 or a negative errno.
 */
int libraries__list(struct parser *parser, const char *interpreter, const char *program,
		    const struct libraries_environment *changes,
		    void (*fn)(const char *path, void *context), void *context);

/*
 * The same for a command that runs the dynamic linker itself, "ld.so --library-path DIR PROGRAM …":
 * @argv, of which argv[0] is the file @linker. @fn gets the program first. -ENOTSUP if @linker is
 * no such linker, -ENOENT if no argument is a program.
 */
int libraries__list_started(struct parser *parser, const char *linker, char *const argv[],
			    void (*fn)(const char *path, void *context), void *context);

#endif
