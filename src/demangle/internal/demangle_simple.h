/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demangled names made short enough for one line of a report or one box of a flame graph. */
#ifndef ALLOCPROF_DEMANGLE_SIMPLE_H
#define ALLOCPROF_DEMANGLE_SIMPLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Both return what is left of a demangled name without parameters, return types and what else
 * nobody reads, never longer than @full and to be freed; a name that makes no sense comes back as it
 * is. NULL without memory. They take the words of libiberty: those of C++, and those of D.
 */
char *demangle_simple__cxx(const char *full);
char *demangle_simple__d(const char *full);

/* A part of a text: not ended by '\0'. */
struct slice {
	const char *at;
	size_t len;
};

/*
 * How many of the @n arguments of template @name a person would write: without the last ones that
 * have their default values. All are in their simple form. May be 0.
 */
size_t template_defaults__kept(struct slice name, const struct slice *args, size_t n);

/* The typedef by which template @name with @arg as its only argument is known, such as "std::string",
 * or NULL. Where there is no argument left its length is 0. */
const char *template_defaults__alias(struct slice name, struct slice arg);

/* Whether @name is a namespace that its library wants nobody to see: std::@name::string. */
bool template_defaults__is_inline_namespace(struct slice name);

#endif
