// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens the event log that belongs to a data file, and says what a log lacks. */
#include "event_log_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "data_file.h"
#include "error.h"
#include "event_log.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "text.h"

static bool has_suffix(const char *path, const char *suffix)
{
	size_t size = strlen(path);

	return size > strlen(suffix) && !strcmp(path + size - strlen(suffix), suffix);
}

/* Returns @path without @suffix, which the caller frees; NULL if there is no memory. */
static char *without(const char *path, const char *suffix)
{
	return strndup(path, strlen(path) - (has_suffix(path, suffix) ? strlen(suffix) : 0));
}

/* Finds the log of events and the data file of a recording. The caller frees both names. If the
 * recording was cut off, its checkpoint serves as the data file. */
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

int event_log_file__open(const char *input, char **log_path, char **data_path,
			 struct event_log_reader **log, struct error *error)
{
	int err = find_files(input, log_path, data_path);

	if (err)
		return error__set(error, err, "out of memory");
	err = event_log_reader__open(*log_path, log, error);
	if (err == -ENOENT)
		error__set(error, err,
			   "no such file %s; `allocprof record --events` writes the event log",
			   *log_path);
	return err;
}

int event_log_file__read_all(const char *log_path, struct event_log_reader **out,
			     struct error *error)
{
	struct event_log_item item;
	struct error damage = { 0 };
	int err = event_log_reader__open(log_path, out, error), more = !err;

	while (more > 0)
		more = event_log_reader__next(*out, &item, &damage);
	return err ?: more == -ENOMEM ? error__set(error, more, "%s", damage.text) : 0;
}

bool event_log_file__is_of(const struct event_log_reader *log, const struct profile *profile)
{
	struct event_log_id_text id = event_log_id__text(event_log_reader__id(log));
	const char *known = profile__meta(profile, "events_id");

	return known && !strcmp(known, id.text);
}

int event_log_file__open_of(const struct profile *profile, const char *input,
			    struct event_log_reader **out, struct error *error)
{
	_cleanup_(free_ptr) char *log_path = NULL, *data_path = NULL;
	struct event_log_reader *log;
	int err;

	if (!profile__meta(profile, "events_id"))
		return error__set(
			error, -ENODATA,
			"this recording has no log of single blocks; record with --events "
			"for that");
	err = event_log_file__open(input, &log_path, &data_path, &log, error);
	if (err)
		return err;
	if (!event_log_file__is_of(log, profile)) {
		event_log_reader__free(log);
		return error__set(
			error, -EINVAL,
			"%s is of another recording than %s; name a data file and the log "
			"that was written with it",
			log_path, input);
	}
	*out = log;
	return 0;
}

void event_log_file__report_choice(const struct profile *profile)
{
	const char *choice = profile__meta(profile, "events_where");

	if (choice)
		message__print("the log has only the blocks that record --where '%s' chose",
			       choice);
}

static bool is_whole(const struct event_log_reader *log)
{
	__u64 n_events, n_lost;

	return event_log_reader__is_complete(log, &n_events, &n_lost) && !n_lost;
}

int event_log_file__report_missing(const struct event_log_reader *log, bool strict)
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
	return strict && !is_whole(log) ? EXIT_INCOMPLETE : EXIT_GOOD;
}
