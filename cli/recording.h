/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names and writes the profile of a finished session. */
#ifndef ALLOCPROF_RECORDING_H
#define ALLOCPROF_RECORDING_H

#include <stdbool.h>

struct error;
struct profile;
struct session;
struct symbol_options;

/*
 * Looks up the names of the frames in the profile of the finished @session. If @names is false,
 * only of the frames that cannot be named later. @named is the profile of an earlier run, whose
 * names are reused for the same code, or NULL. Returns 0 or a negative errno with @error set.
 */
int recording__name(const struct session *session, const struct symbol_options *symbols, bool names,
		    const struct profile *named, struct error *error);

/*
 * Writes the session's profile to the data file @path: first without names, so that an abort of
 * the symbolization costs no data, then with them. Missing names are reported on stderr and are no
 * error. Returns 0 or a negative errno with @error set.
 */
int recording__write(const struct session *session, const struct symbol_options *symbols,
		     bool names, const char *path, struct error *error);

#endif
