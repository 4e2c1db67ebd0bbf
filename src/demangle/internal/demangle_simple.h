/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shortens demangled names for one line of a report or one box of a flame graph. */
#ifndef ALLOCPROF_DEMANGLE_SIMPLE_H
#define ALLOCPROF_DEMANGLE_SIMPLE_H

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

#endif
