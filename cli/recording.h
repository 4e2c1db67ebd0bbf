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
 * Names the frames of the profile of the finished @session. Without @names only those that cannot be looked up later. @named
 * is an earlier run or NULL; its names are reused for the same code. 0 or a negative errno with @error set.
 */
int recording__name(const struct session *session, const struct symbol_options *symbols, bool names,
		    const struct profile *named, struct error *error);

/*
 * Writes that profile to the data file @path: first without names, so that an abort of the
 * symbolization costs no data, then with them. Missing names are reported on stderr and are no
 * error.
 */
int recording__write(const struct session *session, const struct symbol_options *symbols,
		     bool names, const char *path, struct error *error);

#endif
