/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared libraries that are loaded when they are needed: with those that they need in turn they would be the largest part of
 * linking the program, at the start of each command. */
#ifndef ALLOCPROF_LAZY_LIBRARY_H
#define ALLOCPROF_LAZY_LIBRARY_H

#include <stddef.h>

struct error;

struct lazy_library {
	const char *name;	      /* "libcairo.so.2" */
	const char *purpose;	      /* "draws pictures" */
	const char *install, *update; /* remedies where it is not installed, or lacks a function */
	const char *const *functions;
	size_t n_functions;
};

/* Loads the library, which stays loaded, and writes the addresses of its functions to *@to, a structure of nothing but pointers
 * to these in the same order. 0, or -ENOENT with @error set: it is not installed, or lacks a function. */
int lazy_library__load(const struct lazy_library *library, void *to, struct error *error);

#endif
