/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The event log of a recording as JSON lines: allocprof-export(1). */
#ifndef ALLOCPROF_EXPORT_EVENTS_H
#define ALLOCPROF_EXPORT_EVENTS_H

#include <stdio.h>

struct error;
struct event_log_reader;
struct profile;

enum backtrace {
	BACKTRACE_NONE, /* only the stack's id */
	BACKTRACE_ADDR, /* module+0xoffset */
	BACKTRACE_NAME, /* functions */
	BACKTRACE_FULL, /* functions, files, lines and modules */
	BACKTRACES,
};

const char *backtrace__name(enum backtrace backtrace);
/* The one called @name, or -ENOENT. */
int backtrace__by_name(const char *name);

/*
 * Writes all that @log has to @to. @names: a profile of the same recording, or NULL: then addresses
 * take the place of names. 0; -ENOMEM; the error of the log, with @error set; errors of @to are the
 * caller's to find.
 */
int export_events__write(struct event_log_reader *log, const struct profile *names,
			 enum backtrace backtrace, FILE *to, struct error *error);

#endif
