/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints "allocprof: <sentence>" on stderr. */
#ifndef ALLOCPROF_MESSAGE_H
#define ALLOCPROF_MESSAGE_H

/* Prints control characters as '?', so that names cannot steer the terminal. */
void message__print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints the sentence of @error, or where it has none what the negative errno @err means. */
struct error;
void message__error(const struct error *error, int err);

#endif
