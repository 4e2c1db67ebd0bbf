/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared libraries that are loaded only when they are needed. Linked in the usual way, they and
 * the libraries that they need would take most of the time of linking the program at the start of
 * each command. */
#ifndef ALLOCPROF_LAZY_LIBRARY_H
#define ALLOCPROF_LAZY_LIBRARY_H

#include <stddef.h>

struct error;

struct lazy_library {
	const char *name;    /* such as "libcairo.so.2" */
	const char *purpose; /* such as "draws pictures" */
	/* Remedies if the library is not installed, or lacks a function. */
	const char *install, *update;
	const char *const *functions;
	size_t n_functions;
};

/* Loads the library, which stays loaded, and writes the addresses of its functions to *@to, a
 * struct that consists of pointers to them in the order of their names. Returns 0, or -ENOENT with
 * @error set if the library is not installed or lacks a function. */
int lazy_library__load(const struct lazy_library *library, void *to, struct error *error);

#endif
