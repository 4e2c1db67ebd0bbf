/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reports which events a profile lacks. */
#ifndef ALLOCPROF_COMPLETENESS_H
#define ALLOCPROF_COMPLETENESS_H

#include <stdbool.h>

struct profile;

/* Arguments: the length of the interpreter's path, and the path. */
#define PYTHON_NOTE                                                                                \
	"Python (%.*s) keeps objects of up to 512 bytes in arenas of its own, which are no "       \
	"calls of malloc; PYTHONMALLOC=malloc in its environment makes them calls"

/*
 * Prints on stderr what @profile lacks: lost events and allocators without probes always, the
 * reasons of incomplete stacks with @strict. Returns the exit status: EXIT_INCOMPLETE if @strict
 * and anything is missing.
 */
int completeness__report(const struct profile *profile, bool strict);
/* The same for one of several files: each sentence begins with @name. */
int completeness__report_as(const struct profile *profile, const char *name, bool strict);

/*
 * The same sentences as text, one per line, "" if nothing is missing; to be freed. @brief omits the
 * reasons. 0 or -ENOMEM.
 */
int completeness__lines(const struct profile *profile, bool strict, bool brief, char **text);
/* Whether @profile has every call. Stacks may still be incomplete. */
bool completeness__has_all_calls(const struct profile *profile);

/* Warns on stderr if Python kept small objects out of malloc. */
void completeness__report_python(const struct profile *profile);

/*
 * A sentence that says that the profile is sampled, or NULL if it is not (or without memory). To be
 * freed.
 */
char *completeness__sampled(const struct profile *profile);
/* Prints that sentence on stderr, prefixed by the file @name if that is not NULL. */
void completeness__report_sampled(const struct profile *profile, const char *name);

#endif
