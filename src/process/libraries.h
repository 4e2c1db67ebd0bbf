/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the libraries that a program will start with, as its dynamic linker will find them. */
#ifndef ALLOCPROF_LIBRARIES_H
#define ALLOCPROF_LIBRARIES_H

struct linker_cache;
struct parser;

/* Reads /etc/ld.so.cache, in which ldconfig(8) lists the system's libraries for glibc's dynamic
 * linker. */

/* Reads the cache at @path, whose contents are not trusted. The caller frees *@out. Fails with
 * -ENOENT; -EINVAL if the cache has no known format; or -EFBIG. */
int linker_cache__open(const char *path, struct linker_cache **out);
/* Accepts NULL. */
void linker_cache__free(struct linker_cache *cache);

/* Returns the path of the library @name that this processor should use, which belongs to @cache;
 * NULL if there is none. Accepts NULL. */
const char *linker_cache__find(const struct linker_cache *cache, const char *name);

/* Lists the shared libraries that a program will start with, as its dynamic linker will find them.
 * Files are read, but none is executed. */

/* Variables that the program will have in place of this process's; NULL: the same value. */
struct libraries_environment {
	const char *library_path; /* LD_LIBRARY_PATH */
	const char *preload;	  /* LD_PRELOAD */
};

/*
 * Calls @fn with the path of each library with which the dynamic linker @interpreter, glibc's or
 * musl's, will start @program in this process's environment (LD_LIBRARY_PATH, LD_PRELOAD) and its
 * RUNPATH. @changes, which may be NULL, changes the environment. @parser reads the files. The list
 * only saves time, and may be incomplete. Returns 0 or a negative errno; -ENOTSUP for other
 * dynamic linkers.
 */
int libraries__list(struct parser *parser, const char *interpreter, const char *program,
		    const struct libraries_environment *changes,
		    void (*fn)(const char *path, void *context), void *context);

/*
 * Does the same for a command that runs the dynamic linker itself, "ld.so --library-path DIR
 * PROGRAM ...". @argv is the command, whose argv[0] is the file @linker. @fn gets the program
 * first. Fails with -ENOTSUP if @linker is no such linker; -ENOENT if no argument is a program.
 */
int libraries__list_started(struct parser *parser, const char *linker, char *const argv[],
			    void (*fn)(const char *path, void *context), void *context);

/* Finds the C library of this machine's programs: glibc, where its dynamic linker would find it, or else musl. The caller
 * frees *@out. Returns 0, -ENOENT or -ENOMEM. */
int libraries__find_libc(char **out);

#endif
