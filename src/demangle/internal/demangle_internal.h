/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demanglers in this process, and in a worker, since hostile names can crash them or keep them
 * busy forever; and short forms of names. */
#ifndef ALLOCPROF_DEMANGLE_INTERNAL_H
#define ALLOCPROF_DEMANGLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Both functions return the demangled name without parameters, return types and other clutter,
 * which is never longer than @full and which the caller frees. A name that they cannot parse is
 * returned unchanged. Returns NULL if there is no memory. The input is libiberty's text for C++
 * and for D.
 */
char *demangle_simple__cxx(const char *full);
char *demangle_simple__d(const char *full);

/* A part of a text, not NUL-terminated. */
struct slice {
	const char *at;
	size_t len;
};

/* Longest demangled name. A mangled name of 100 bytes can expand to gigabytes; names that would be
 * longer stay mangled. */
#define DEMANGLED_SIZE 8192

/* Returns whether @base is a C++ name in clear, without parameters, as DWARF has it in place of a
 * linkage name. */
bool demangle_base__is_cxx_text(const char *base);

/* Stores both forms of @base, a name without clone suffix, which the caller frees. Returns 1, 0 if
 * it cannot be demangled, or -ENOMEM. */
int demangle_base__names(const char *base, char **name, char **full_name);

struct isolated_name {
	const char *symbol;	/* without clone suffix */
	char *name, *full_name; /* NULL if unknown; owned by the caller */
};

/* Returns whether @symbol has the prefix of D or Swift. */
bool demangle_isolated__knows(const char *symbol);

/*
 * Fills in the names of @n symbols of any language. A name that crashes the worker, or whose text
 * is too long, stays NULL, as do Swift's names if its runtime library cannot be loaded. Returns 0
 * or -ENOMEM.
 */
int demangle_isolated__run(struct isolated_name *names, size_t n);

#endif
