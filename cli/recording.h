/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a session recorded, as a profile with names. */
#ifndef ALLOCPROF_RECORDING_H
#define ALLOCPROF_RECORDING_H

#include <stdbool.h>

struct error;
struct profile;
struct session;
struct symbol_options;

/*
 * Completes and names the profile of the finished @session; *@profile is the session's. @argv is the
 * launched command or NULL. Without @names only what cannot be named later. Names that @named, of an
 * earlier run or NULL, has of the same places are not looked up again. 0 or a negative errno with @error
 * set.
 */
int recording__profile(const struct session *session, char *const argv[],
		       const struct symbol_options *symbols, bool names,
		       const struct profile *named, struct profile **profile, struct error *error);

/*
 * The same into the data file @path: first without the names, so that nothing that happens while they are
 * looked up harms the recording, then with them. That names are missing is said on stderr, and no error.
 */
int recording__write(const struct session *session, char *const argv[],
		     const struct symbol_options *symbols, bool names, const char *path,
		     struct profile **profile, struct error *error);

#endif
