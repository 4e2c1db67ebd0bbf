/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of defined sources' functions in reports and data files: "pool.alloc", "pool.free". */
#ifndef ALLOCPROF_SOURCE_NAMES_H
#define ALLOCPROF_SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

/* Maximum length of a source's name, of letters, digits, '-' and '_'. */
#define SOURCE_NAME_MAX 31

/* The sources of a run or a profile; zeroed at first. */
struct source_names {
	size_t n;
	/* By source, then by enum ap_source_kind. */
	char functions[AP_MAX_SOURCES * AP_SOURCE_KINDS][SOURCE_NAME_MAX + sizeof(".realloc")];
};

/* The index of source @name, which is added if missing. -EINVAL: invalid name; -E2BIG: there are
 * AP_MAX_SOURCES others. */
int source_names__add(struct source_names *names, const char *name);
bool source_names__has(const struct source_names *names, const char *name);

/* The name of any function, also of known allocators. @names may be NULL. */
const char *source_names__function(const struct source_names *names, enum ap_function function);

/* All functions below this number have a name. */
static inline int source_names__n_functions(const struct source_names *names)
{
	return AP_DEFINED + (names ? (int)names->n * AP_SOURCE_KINDS : 0);
}

/* The function of this name, or -ENOENT. */
int source_names__find(const struct source_names *names, const char *function);
/* The same; adds the source if it is unknown. -ENOENT: no such name; -E2BIG. */
int source_names__take(struct source_names *names, const char *function);

static inline enum ap_function source__function(__u32 source, enum ap_source_kind kind)
{
	return (enum ap_function)(AP_DEFINED + source * AP_SOURCE_KINDS + kind);
}

/* "alloc", "realloc", "free". */
const char *source_kind__name(enum ap_source_kind kind);

#endif
