/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Knows the functions that reports omit because they only forward a request for memory, or are
 * internal to a library: allocprof-wrappers(5). */
#ifndef ALLOCPROF_WRAPPERS_H
#define ALLOCPROF_WRAPPERS_H

#include <stdbool.h>

struct error;
struct wrappers;

/*
 * Loads the built-in list, the user's own (allocprof/wrappers in $XDG_CONFIG_HOME, if it exists),
 * and @extra_path, which may be NULL. Returns 0, or with @error set -EINVAL for a malformed line,
 * -EFBIG, or the error of reading; or -ENOMEM.
 */
int wrappers__load(const char *extra_path, struct wrappers **out, struct error *error);
/* Loads the built-in list alone. Returns 0 or -ENOMEM. */
int wrappers__load_builtin(struct wrappers **out);
void wrappers__free(struct wrappers *wrappers);

/* Returns whether function @name (in its simple form) of the file @module_path (NULL: unknown) is
 * a wrapper. The caller omits consecutive innermost wrappers, but keeps at least one frame. */
bool wrappers__hides(const struct wrappers *wrappers, const char *name, const char *module_path);

/* Returns whether the function is a library's internal one. Of consecutive ones the caller keeps
 * only the outermost, which the program called. */
bool wrappers__folds(const struct wrappers *wrappers, const char *name, const char *module_path);

#endif
