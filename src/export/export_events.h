/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the event log of a recording as JSON lines: allocprof-export(1). */
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
/* Returns the form called @name, or -ENOENT. */
int backtrace__by_name(const char *name);

/*
 * Writes everything in @log to @to. @known is a reader of the same log that has read it all: the
 * stack of a site may stand behind the site's first events. @names is a profile of the same
 * recording, or NULL: then addresses replace names. Returns 0, -ENOMEM, or the error of the log with @error set; the caller
 * checks @to for errors.
 */
int export_events__write(struct event_log_reader *log, const struct event_log_reader *known,
			 const struct profile *names, enum backtrace backtrace, FILE *to,
			 struct error *error);

#endif
