// SPDX-License-Identifier: GPL-3.0-or-later
#include "export_events_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "completeness_messages.h"
#include "data_file.h"
#include "error.h"
#include "event_log.h"
#include "message.h"
#include "number.h"
#include "output_file.h"
#include "profile.h"
#include "text.h"

static void free_profile(struct profile **profile)
{
	profile__free(*profile);
}

static void free_log(struct event_log_reader **log)
{
	event_log_reader__free(*log);
}

static bool has_suffix(const char *path, const char *suffix)
{
	size_t size = strlen(path);

	return size > strlen(suffix) && !strcmp(path + size - strlen(suffix), suffix);
}

/* @path without @suffix, to be freed; NULL on ENOMEM. */
static char *without(const char *path, const char *suffix)
{
	return strndup(path, strlen(path) - (has_suffix(path, suffix) ? strlen(suffix) : 0));
}

/* Both to be freed. Of a recording that was cut off the data file is the checkpoint. */
static int find_files(const char *input, char **log_path, char **data_path)
{
	_cleanup_(free_ptr) char *data = without(input, DATA_FILE_CHECKPOINT);
	char *checkpoint;

	if (!data)
		return -ENOMEM;
	if (!has_suffix(input, DATA_FILE_LOG)) {
		*log_path = event_log__path(data);
		*data_path = strdup(input);
		return *log_path && *data_path ? 0 : -ENOMEM;
	}
	*log_path = strdup(input);
	*data_path = without(input, DATA_FILE_LOG);
	if (!*log_path || !*data_path ||
	    asprintf(&checkpoint, "%s" DATA_FILE_CHECKPOINT, *data_path) < 0)
		return -ENOMEM;
	if (access(*data_path, F_OK) && !access(checkpoint, F_OK)) {
		free(*data_path);
		*data_path = checkpoint;
	} else {
		free(checkpoint);
	}
	return 0;
}

/* The profile of the same recording, or NULL with a message why there is none. */
static struct profile *read_names(const char *path, const struct event_log_reader *log)
{
	struct event_log_id_text id = event_log_id__text(event_log_reader__id(log));
	struct error error = { 0 };
	struct profile *profile;
	const char *known;

	if (data_file__read(path, &profile, &error)) {
		message__print("printing addresses instead of names: %s", error.text);
		return NULL;
	}
	known = profile__meta(profile, "events_id");
	if (known && !strcmp(known, id.text)) {
		if (profile__meta(profile, "events_stacks"))
			message__print(
				"%s was written before the recording ended: stacks that are new "
				"since then have addresses instead of names",
				path);
		return profile;
	}
	message__print("printing addresses instead of names: %s is of another recording than "
		       "the event log",
		       path);
	profile__free(profile);
	return NULL;
}

struct held {
	struct event_log_reader *log;
	const struct profile *names;
	enum backtrace backtrace;
	struct error *error;
	int *err;
};

static int write_events(FILE *to, const void *context)
{
	const struct held *held = context;

	*held->err = export_events__write(held->log, held->names, held->backtrace, to, held->error);
	return 0;
}

static int report_missing(const struct event_log_reader *log, bool strict)
{
	__u64 n_events, n_lost;
	bool complete = event_log_reader__is_complete(log, &n_events, &n_lost);

	if (!complete)
		message__print("the recording was cut off: the log has its first %s %s, up to "
			       "the last whole block",
			       number__count(n_events).text,
			       plural__of("event{|s}", n_events).text);
	if (n_lost)
		message__print(
			"%s %s", number__count(n_lost).text,
			plural__of(
				"event{|s} {is|are} not in the log: {it|they} came faster than allocprof "
				"read {it|them}, or could not be written",
				n_lost)
				.text);
	return strict && (!complete || n_lost) ? EXIT_INCOMPLETE : EXIT_GOOD;
}

int export_events__run(const struct data_paths *paths, enum backtrace backtrace, bool strict)
{
	_cleanup_(free_ptr) char *log_path = NULL, *data_path = NULL;
	_cleanup_(free_profile) struct profile *names = NULL;
	_cleanup_(free_log) struct event_log_reader *log = NULL;
	struct error error = { 0 }, log_error = { 0 };
	int status, log_err = 0, err = find_files(paths->input, &log_path, &data_path);

	if (err) {
		error__set(&error, err, "out of memory");
		return output_file__status(err, &error);
	}
	err = event_log_reader__open(log_path, &log, &error);
	if (err == -ENOENT)
		error__set(&error, err,
			   "no such file %s; `allocprof record --events` writes the event log",
			   log_path);
	if (!err && backtrace >= BACKTRACE_NAME)
		names = read_names(data_path, log);
	if (!err)
		err = output_file__check(paths->output, "-o", log_path, "the event log", &error);
	if (!err)
		err = output_file__write(
			paths->output, data_path, false, write_events,
			&(struct held){ log, names, backtrace, &log_error, &log_err }, &error);
	if (err)
		return output_file__status(err, &error);
	if (log_err)
		return output_file__status(log_err, &log_error);
	status = names ? completeness_messages__print_altered(names) : EXIT_GOOD;
	return report_missing(log, strict) ?: status;
}
