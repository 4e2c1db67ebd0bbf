// SPDX-License-Identifier: GPL-3.0-or-later
#include "record_summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "data_file.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "selection.h"
#include "text.h"

static void print_contents(const struct profile *profile, const struct selection *totals, FILE *to)
{
	__u64 calls = profile__ledger(profile, "attributed");
	__u64 complete = profile__ledger(profile, "complete");

	if (profile__sample_bytes(profile)) {
		fprintf(to, "%s of %s calls, which stand for %s",
			number__count(profile__ledger(profile, "sampled")).text,
			number__count(profile__ledger(profile, "events")).text,
			number__bytes(totals->size_bytes, false).text);
		if (totals->size_bytes)
			fprintf(to, " within %s",
				number__margin(
					profile_estimate__margin(&totals->of_allocations, true),
					totals->size_bytes)
					.text);
	} else {
		fprintf(to, "%s %s", number__count(calls).text, plural__of("call{|s}", calls).text);
	}
	if (complete < calls)
		fprintf(to, " (%s of the calls have a complete stack)",
			number__share(complete, calls).text);
}

static void print_file(const char *path, FILE *to)
{
	fprintf(to, ", in %s; next: allocprof report", path);
	if (strcmp(path, DATA_FILE_DEFAULT)) {
		fputs(path[0] == '-' ? " -i " : " ", to);
		shell_word__print(path, to);
	}
}

static void print(const struct profile *profile, const struct selection *totals, const char *what,
		  const char *path)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	FILE *line = open_memstream(&text, &size);

	if (!line)
		return;
	fputs("recorded ", line);
	if (profile)
		print_contents(profile, totals, line);
	else
		fputs(what, line);
	print_file(path, line);
	if (!fclose(line))
		message__print("%s", text);
}

void record_summary__print_log(const struct profile *profile, const char *path)
{
	__u64 logged = profile__ledger(profile, "logged");

	if (profile__meta(profile, "events_id"))
		message__print("event log:   %s %s in %s; next: allocprof export --format=events",
			       number__count(logged).text, plural__of("event{|s}", logged).text,
			       path);
}

void record_summary__print_lost_events(const struct profile *profile, const char *path)
{
	__u64 lost = profile__ledger(profile, "not_logged");
	int err = profile->totals.events_err;

	if (err)
		message__print(
			"%s %s could not be written to %s: %s; the data file is not affected",
			number__count(lost).text, plural__of("event{|s}", lost).text, path,
			strerror(-err));
	else if (lost)
		message__print(
			"%s %s not in %s, since allocprof could not read %s; --throttle slows the "
			"target down instead. The data file is not affected",
			number__count(lost).text, plural__of("event{|s} {is|are}", lost).text, path,
			plural__of("{it|them} as fast as {it|they} came", lost).text);
}

void record_summary__print(const struct profile *profile, const struct selection *totals,
			   const char *path)
{
	print(profile, totals, NULL, path);
}

void record_summary__print_runs(const char *what, const char *path)
{
	print(NULL, NULL, what, path);
}
