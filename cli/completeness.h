/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a report owes its reader: whether the data it shows is all there was. */
#ifndef ALLOCPROF_COMPLETENESS_H
#define ALLOCPROF_COMPLETENESS_H

#include <stdbool.h>

struct profile;

/* Takes the length of a path, and the path. */
#define PYTHON_NOTE                                                                                \
	"Python (%.*s) keeps objects of up to 512 bytes in arenas of its own, which are no "       \
	"calls of malloc; PYTHONMALLOC=malloc in its environment makes them calls"

/*
 * Says on stderr what @profile lacks: lost events and allocators without probes always, incomplete
 * stacks where @strict. Returns the exit status: EXIT_INCOMPLETE where @strict and it lacks any.
 */
int completeness__report(const struct profile *profile, bool strict);
/* The same of one of several: @name, that of its file, goes before each sentence. */
int completeness__report_as(const struct profile *profile, const char *name, bool strict);

/* The same sentences as text, a line each and to be freed; "" where nothing is lacking; @brief is without the
 * reasons. 0 or -ENOMEM. */
int completeness__lines(const struct profile *profile, bool strict, bool brief, char **text);
/* Whether no call is missing in @profile; stacks may end early. */
bool completeness__has_all_calls(const struct profile *profile);

/* Prints a sentence to stderr where Python kept small objects from malloc. */
void completeness__tell_python(const struct profile *profile);

/* Where bytes were sampled, a sentence that says so, else NULL. To be freed; NULL without memory too. */
char *completeness__sampled(const struct profile *profile);
/* Tells it on stderr, of the file @name where that is not NULL. */
void completeness__tell_sampled(const struct profile *profile, const char *name);

#endif
