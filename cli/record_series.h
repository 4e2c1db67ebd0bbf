/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collects the runs of `record -r` in one profile. */
#ifndef ALLOCPROF_RECORD_SERIES_H
#define ALLOCPROF_RECORD_SERIES_H

#include <stdbool.h>

struct error;
struct measure;
struct profile;
struct series;
struct session;
struct profile;
struct symbol_options;

/* To be released. */
struct record_series {
	const struct measure *measure;
	const struct series *series;
	const struct symbol_options *symbols;
	bool names;		 /* look names up */
	struct profile *profile; /* NULL before the first run; owned */
};

/*
 * Adds the finished @session as a run, and reports on stderr what it lacks. A negative errno with
 * @error set on failure.
 */
int record_series__add(struct record_series *record, const struct session *session,
		       struct error *error);
/* Writes the runs to @path, and a summary to stderr. 0 or a negative errno with @error set. */
int record_series__write(struct record_series *record, const char *path, struct error *error);
void record_series__release(struct record_series *record);

#endif
