/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds and opens the event log of a recording. */
#ifndef ALLOCPROF_EVENT_LOG_FILE_H
#define ALLOCPROF_EVENT_LOG_FILE_H

#include <stdbool.h>

struct error;
struct event_log_reader;
struct profile;

/*
 * Opens the log that @input is, or that belongs to the data file @input, and finds the data file. If the recording was cut
 * off, its checkpoint serves as such. The caller frees both paths, which may be set also on failure, and the log. Returns 0
 * or a negative errno with @error set.
 */
int event_log_file__open(const char *input, char **log_path, char **data_path,
			 struct event_log_reader **log, struct error *error);
/* Opens the log and reads it to its end, or to where it is damaged. Returns 0 or a negative errno with @error set: it cannot be opened, or there is no memory. */
int event_log_file__read_all(const char *log_path, struct event_log_reader **out,
			     struct error *error);
/* Returns whether @log was written with the data file of @profile. */
bool event_log_file__is_of(const struct event_log_reader *log, const struct profile *profile);
/* Opens the log of @profile, which was read from @input. Returns 0 or a negative errno with @error set. */
int event_log_file__open_of(const struct profile *profile, const char *input,
			    struct event_log_reader **log, struct error *error);
/* Says on stderr of which blocks the log of @profile is, if it is not of all. */
void event_log_file__report_choice(const struct profile *profile);
/* Says on stderr what @log, which was read to its end, lacks. Returns an exit status; EXIT_INCOMPLETE only if @strict. */
int event_log_file__report_missing(const struct event_log_reader *log, bool strict);

#endif
