/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_ERROR_H
#define ALLOCPROF_ERROR_H

#include <stdarg.h>

/*
 * One sentence for the user: what failed, why, and the remedy, without prefix and newline. Callers
 * own the struct, usually on the stack, zeroed; functions that take one accept NULL.
 */
struct error {
	char text[1024];
};

/*
 * Sets the sentence and returns @err (a negative errno), so that `return error__set(...)` is the
 * one way to fail with words. Overwrites what an inner function said; wrap with %s of the old text
 * through error__wrap() to keep it.
 */
int error__set(struct error *error, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "<formatted>: " before the sentence that is already there. Returns @err. */
int error__wrap(struct error *error, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
