/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LD_PRELOAD. The target does not see that it names this library, and what it executes gets the name
 * again: the functions that execute programs are interposed (exec.c).
 */
#ifndef ALLOCPROF_INSIDE_ENVIRONMENT_H
#define ALLOCPROF_INSIDE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the environment has libraries that audit the dynamic linker (LD_AUDIT). */
bool environment__names_auditors(void);

/* Removes this library, which is in @directory, from LD_PRELOAD of the process. Does nothing where the C
 * library has not set its environment yet; false then. */
bool environment__hide(const char *directory);

/* The C library's variable; NULL where there is none. */
char ***environment__variable(void);

/* Returns whether the entry is LD_PRELOAD. */
bool environment__is_preload(const char *entry);

/* Returns whether LD_PRELOAD names this library, which is in @directory, first. */
bool environment__has(char *const *entries, const char *directory);

/* An environment that a program is to be executed with. Other threads may be changing it, and it need not be one: what the
 * kernel would answer with an error must not end the target here. */
struct environment {
	char *const *entries; /* the target's */
	size_t n;
	char *entry;	       /* LD_PRELOAD; NULL: it has none */
	const char *preloaded; /* its value, "" if there is none */
	bool has_library;      /* which names this library first */
	bool traces;	       /* the dynamic linker lists libraries and runs nothing (ldd) */
	size_t text_bytes;     /* of LD_PRELOAD as it is */
};

/* Reads the environment @entries; NULL is one without entries. Returns false if it cannot be read. */
bool environment__look(struct environment *out, char *const *entries, const char *directory);

/* Bytes that environment__fill() writes to @text. */
size_t environment__text_bytes(const struct environment *environment, const char *directory,
			       const char *name);

/*
 * Copies it to @out, which has room for 2 more entries, with the library @name, in @directory, in front of what LD_PRELOAD has,
 * which is put together at @text; or, where @name is NULL, without this library. False if it cannot be read.
 */
bool environment__fill(const struct environment *environment, const char *directory,
		       const char *name, char **out, char *text);

#endif
