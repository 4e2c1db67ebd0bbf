/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions that reports leave out, since they only pass a request for memory on or are a library's
 * inner ones: allocprof-wrappers(5). */
#ifndef ALLOCPROF_WRAPPERS_H
#define ALLOCPROF_WRAPPERS_H

#include <stdbool.h>

struct error;
struct wrappers;

/*
 * The built-in list, then the user's own (allocprof/wrappers in $XDG_CONFIG_HOME, where it is there),
 * then @extra_path, which may be NULL. 0, or with @error set -EINVAL for a line that is none, -EFBIG,
 * or what reading said; -ENOMEM.
 */
int wrappers__load(const char *extra_path, struct wrappers **out, struct error *error);
void wrappers__free(struct wrappers *wrappers);

/* Whether the function @name (in its short form) of the file @module_path (NULL: unknown) is one.
 * Where it is asked about all frames of a stack, only the innermost ones in a row are to go, and one
 * has to stay. */
bool wrappers__hides(const struct wrappers *wrappers, const char *name, const char *module_path);

/* Whether it is a library's own function, of which in a row only the outermost, that was called from
 * without, is to stay. */
bool wrappers__folds(const struct wrappers *wrappers, const char *name, const char *module_path);

#endif
