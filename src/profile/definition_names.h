/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of defined allocators' functions in reports and data files: "pool.alloc", "pool.free"; and of functions
 * that are only counted: "retain.count". */
#ifndef ALLOCPROF_DEFINITION_NAMES_H
#define ALLOCPROF_DEFINITION_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

/* Maximum length of a definition's name, of letters, digits, '-' and '_'. */
#define DEFINITION_NAME_MAX 31

/* The definitions of a run or a profile; zeroed at first. */
struct definition_names {
	size_t n;
	__u64 counted; /* mask of the functions that are only counted, each the first of its definition's */
	/* Indexed by definition, then by enum ap_defined_kind; "" where the definition has no such function. */
	char functions[AP_MAX_DEFINITIONS * AP_DEFINED_KINDS]
		      [DEFINITION_NAME_MAX + sizeof(".realloc")];
};

/* Returns the index of definition @name, which is added if it is new. Fails with -EINVAL if the
 * name is invalid; -E2BIG if there are AP_MAX_DEFINITIONS others. */
int definition_names__add(struct definition_names *names, const char *name);
/* Makes the definition @index one of functions that are only counted. */
void definition_names__count_only(struct definition_names *names, size_t index);
bool definition_names__has(const struct definition_names *names, const char *name);

/* Returns the name of any function, also of known allocators. @names may be NULL. */
const char *definition_names__function(const struct definition_names *names,
				       enum ap_function function);

/* Returns a number below which all functions have a name. */
static inline int definition_names__n_functions(const struct definition_names *names)
{
	return AP_DEFINED + (names ? (int)names->n * AP_DEFINED_KINDS : 0);
}

/* Returns whether calls of the function are only counted: they hand out nothing. @names may be NULL. */
static inline bool definition_names__counts(const struct definition_names *names,
					    enum ap_function function)
{
	return names && names->counted >> function & 1;
}

/* Returns the function of this name, or -ENOENT. */
int definition_names__find(const struct definition_names *names, const char *function);
/* Works like definition_names__find(), but adds the definition if it is unknown. Fails with
 * -ENOENT if no function has this name; or -E2BIG. */
int definition_names__take(struct definition_names *names, const char *function);

static inline enum ap_function definition__function(__u32 definition, enum ap_defined_kind kind)
{
	return (enum ap_function)(AP_DEFINED + definition * AP_DEFINED_KINDS + kind);
}

/* The kind of function that is only counted, in a definition and in its name. */
#define DEFINITION_COUNT "count"

/* Returns "alloc", "realloc" or "free". */
const char *defined_kind__name(enum ap_defined_kind kind);

#endif
