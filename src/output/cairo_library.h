/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libcairo, which draws pictures. It is loaded when one is drawn: with the 18 libraries that it needs it would be the
 * largest part of linking the program, at the start of each command. */
#ifndef ALLOCPROF_CAIRO_LIBRARY_H
#define ALLOCPROF_CAIRO_LIBRARY_H

struct cairo_library;
struct error;

/* Returns 0, with *@out, which the caller closes; -ENOENT with @error set: cairo is not installed,
 * or lacks a function; or -ENOMEM. */
int cairo_library__open(struct cairo_library **out, struct error *error);
/* Frees @cairo; the library itself stays loaded. Accepts NULL. */
void cairo_library__close(struct cairo_library *cairo);

#endif
