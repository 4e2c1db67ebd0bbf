/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hides from the target that LD_PRELOAD names this library, and names it again to the programs
 * that the target executes, whose functions exec.c interposes.
 */
#ifndef ALLOCPROF_INSIDE_ENVIRONMENT_H
#define ALLOCPROF_INSIDE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the environment names libraries that audit the dynamic linker (LD_AUDIT). */
bool environment__names_auditors(void);

/* Removes this library, which is in @directory, from the process's LD_PRELOAD. Does nothing and
 * returns false if the C library has not set up its environment yet. */
bool environment__hide(const char *directory);

/* Returns the address of the C library's variable environ, or NULL if there is none. */
char ***environment__variable(void);

/* Returns whether the entry begins with "LD_PRELOAD=". */
bool environment__is_preload(const char *entry);

/* Returns whether the first library in LD_PRELOAD is this one, which is in @directory. */
bool environment__has(char *const *entries, const char *directory);

/* An environment with which a program is to be executed. It may be invalid, and other threads may
 * be changing it: where the kernel would return an error, this library must not crash the target. */
struct environment {
	char *const *entries; /* the target's array */
	size_t n;
	char *entry;	       /* its entry of LD_PRELOAD; NULL: it has none */
	const char *preloaded; /* value of LD_PRELOAD, "" if there is none */
	bool has_library;      /* the value begins with this library */
	bool traces;	       /* the dynamic linker lists libraries and runs nothing (ldd) */
	size_t text_bytes;     /* bytes of the target's entry of LD_PRELOAD */
};

/* Reads the environment @entries; NULL is one without entries. Returns false if it cannot be read. */
bool environment__look(struct environment *out, char *const *entries, const char *directory);

/* Returns the number of bytes that environment__fill() writes to @text. */
size_t environment__text_bytes(const struct environment *environment, const char *directory,
			       const char *name);

/*
 * Copies the environment to @out, which has room for 2 more entries. If @name is not NULL, the
 * copy's LD_PRELOAD begins with the library @name in @directory; else it is without this library.
 * The new entry is written to @text. Returns false if the environment cannot be read.
 */
bool environment__fill(const struct environment *environment, const char *directory,
		       const char *name, char **out, char *text);

#endif
