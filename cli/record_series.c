// SPDX-License-Identifier: GPL-3.0-or-later
#include "record_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "data_file.h"
#include "error.h"
#include "measure.h"
#include "measure_gaps.h"
#include "message.h"
#include "profile_runs.h"
#include "record_summary.h"
#include "recording.h"
#include "runs_text.h"
#include "series.h"
#include "session.h"
#include "symbol_options.h"
#include "symbols.h"

static int fail(int err, struct error *error)
{
	return error__set(error, err, "cannot put the runs into one profile: %s", strerror(-err));
}

int record_series__add(struct record_series *record, const struct session *session,
		       struct error *error)
{
	struct symbol_options symbols = *record->symbols;
	const struct profile *run = session__profile(session);
	int err;

	/* Servers are queried once for all runs, at the end. */
	symbols.no_debuginfod = true;
	symbols.stop = NULL;
	if (!record->profile)
		record->profile = profile__new();
	if (!record->profile)
		return fail(-ENOMEM, error);
	err = recording__name(session, &symbols, record->names, record->profile, error);
	if (err)
		return err;
	err = profile__add_run(record->profile, run);
	measure__report_gaps(record->measure, run);
	return err ? fail(err, error) : 0;
}

static void print_summary(const struct profile *profile, const char *path)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int err = memory ? runs_text__print(profile, memory) : -ENOMEM;

	if (memory && fclose(memory))
		err = -ENOMEM;
	if (!err)
		record_summary__print_runs(text, path);
}

static int write_file(const struct record_series *record, const char *path, struct error *error)
{
	struct data_file_version version;
	struct error why_unnamed = { 0 };
	int err;

	if (!record->names || record->symbols->no_debuginfod || !symbols__have_servers())
		return data_file__write(record->profile, path, error);
	err = data_file__write_first(record->profile, path, &version, error);
	if (err)
		return err;
	(void)record->symbols->stop(record->symbols->stop_context);
	if (offline_names__add(record->profile, record->symbols, false, &why_unnamed)) {
		message__print("%s; `allocprof symbolize` can do it later", why_unnamed.text);
		return 0;
	}
	return data_file__write_names(record->profile, path, &version, error);
}

int record_series__write(struct record_series *record, const char *path, struct error *error)
{
	const struct series *series = record->series;
	int err = profile__settle_runs(record->profile, series->runs, series->warmup);

	if (err)
		return fail(err, error);
	err = write_file(record, path, error);
	if (!err && !record->measure->quiet)
		print_summary(record->profile, path);
	return err;
}

void record_series__release(struct record_series *record)
{
	profile__free(record->profile);
}
