/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LD_PRELOAD. The target does not see that it names this library, and what it executes gets the name
 * again: the functions that execute programs are interposed (exec.c).
 */
#ifndef ALLOCPROF_INSIDE_ENVIRONMENT_H
#define ALLOCPROF_INSIDE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Removes this library, which is in @directory, from LD_PRELOAD of the process. Does nothing where the C
 * library has not set its environment yet; false then. */
bool environment__hide(const char *directory);

/* The C library's variable; NULL where there is none. */
char ***environment__variable(void);

/* Number of entries. */
size_t environment__count(char *const *environment);

/* Whether the entry is LD_PRELOAD. */
bool environment__is_preload(const char *entry);

/* Whether LD_PRELOAD names this library, which is in @directory, first. */
bool environment__has(char *const *environment, const char *directory);

/* The value of LD_PRELOAD, "" if there is none. */
const char *environment__preloaded(char *const *environment);
/* What LD_PRELOAD names: this library, in @directory by @name. */
struct preloaded {
	const char *directory, *name;
};

/* Bytes that environment__with_library() writes to @text. */
size_t environment__text_bytes(char *const *environment, const struct preloaded *library);

/* Copies @environment, of @n entries, to @out, which has room for 2 more, with this library in front of what
 * LD_PRELOAD has, which is put together at @text. */
void environment__with_library(char *const *environment, size_t n, const struct preloaded *library,
			       char **out, char *text);

#endif
