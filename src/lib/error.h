/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_ERROR_H
#define ALLOCPROF_ERROR_H

#include <stdarg.h>

/* One sentence for the user that says what failed, why, and the remedy, without a prefix or a
 * newline. The caller owns the zeroed struct, usually on the stack; functions that take a pointer
 * to one accept NULL. */
struct error {
	char text[1024];
};

/* Sets the sentence and returns @err (a negative errno): `return error__set(...)`. Replaces an
 * earlier sentence; error__wrap() keeps it. */
int error__set(struct error *error, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "<formatted>: " before the sentence. Returns @err. */
int error__wrap(struct error *error, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
