/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demanglers in this process and in a worker, which hostile names can crash or keep busy forever; and short forms of names. */
#ifndef ALLOCPROF_DEMANGLE_INTERNAL_H
#define ALLOCPROF_DEMANGLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Both return the demangled name without parameters, return types and other clutter, never longer
 * than @full, to be freed; a name that they cannot parse is returned unchanged. NULL on ENOMEM. The
 * input is libiberty's text for C++ and for D.
 */
char *demangle_simple__cxx(const char *full);
char *demangle_simple__d(const char *full);

/* A part of a text, not NUL-terminated. */
struct slice {
	const char *at;
	size_t len;
};

/* How many of the @n arguments of template @name are kept when trailing arguments with their
 * default values are dropped. All are in their simple form. May be 0. */
size_t template_defaults__kept(struct slice name, const struct slice *args, size_t n);

/* The typedef for template @name with the single argument @arg, such as "std::string", or NULL.
 * @arg of length 0: no argument is left. */
const char *template_defaults__alias(struct slice name, struct slice arg);

/* Whether @name is an inline namespace that its library hides: std::@name::string. */
bool template_defaults__is_inline_namespace(struct slice name);

/* A mangled name of 100 bytes can expand to gigabytes; longer ones stay mangled. */
#define DEMANGLED_SIZE 8192

/* Whether @base is a C++ name in clear, without parameters, as DWARF has it in place of a linkage name. */
bool demangle_base__is_cxx_text(const char *base);

/* Both forms of @base, a name without clone suffix, to be freed: 1, 0 if it cannot be demangled, or -ENOMEM. */
int demangle_base__names(const char *base, char **name, char **full_name);

struct isolated_name {
	const char *symbol;	/* without clone suffix */
	char *name, *full_name; /* NULL if unknown; owned by the caller */
};

/* Whether @symbol has the prefix of D or Swift. */
bool demangle_isolated__knows(const char *symbol);

/*
 * Fills in the names of @n symbols of any language. One that crashes the worker, or whose text is too long, stays NULL,
 * as do Swift's if its runtime library cannot be loaded. 0 or -ENOMEM.
 */
int demangle_isolated__run(struct isolated_name *names, size_t n);

#endif
