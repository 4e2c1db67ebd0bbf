// SPDX-License-Identifier: GPL-3.0-or-later
#include "record_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "data_file.h"
#include "error.h"
#include "measure.h"
#include "profile_runs.h"
#include "record_summary.h"
#include "recording.h"
#include "runs_text.h"
#include "series.h"

static int fail(int err, struct error *error)
{
	return error__set(error, err, "cannot put the runs into one profile: %s", strerror(-err));
}

int record_series__add(struct record_series *record, const struct session *session,
		       const struct session_results *results, struct error *error)
{
	struct profile *run;
	int err;

	if (!record->profile)
		record->profile = profile__new();
	if (!record->profile)
		return fail(-ENOMEM, error);
	err = recording__profile(session, record->measure->argv, record->symbols, record->names,
				 record->profile, &run, error);
	if (err)
		return err;
	err = profile__add_run(record->profile, run);
	measure__report_gaps(session, results);
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

int record_series__write(struct record_series *record, const char *path, struct error *error)
{
	const struct series *series = record->series;
	int err = profile__settle_runs(record->profile, series->runs, series->warmup);

	if (err)
		return fail(err, error);
	err = data_file__write(record->profile, path, error);
	if (!err && !record->measure->quiet)
		print_summary(record->profile, path);
	return err;
}

void record_series__release(struct record_series *record)
{
	profile__free(record->profile);
}
