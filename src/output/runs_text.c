// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_text.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "filter.h"
#include "number.h"
#include "profile_runs.h"
#include "text.h"

bool runs_text__taken(const struct profile *profile, char text[RUNS_TEXT_SIZE])
{
	if (!profile__meta(profile, "run") || !profile__meta(profile, "runs"))
		return false;
	snprintf(text, RUNS_TEXT_SIZE, "run %llu of %llu", profile__meta_number(profile, "run"),
		 profile__meta_number(profile, "runs"));
	return true;
}

int runs_text__range(const struct profile *profile, struct figure_range *range)
{
	__u32 n = profile__n_runs(profile);
	_cleanup_(free_ptr) __s64 *events = calloc(n, sizeof(*events));

	if (!events)
		return -ENOMEM;
	for (__u32 i = 0; i < n; i++)
		events[i] = profile__run_ledger(profile, i + 1, "events");
	*range = figures__range(events, n);
	return 0;
}

static void print_number(const struct profile *profile, FILE *to)
{
	__u64 wanted = profile__meta_number(profile, "wanted_runs");
	__u32 n = profile__n_runs(profile);

	if (wanted > n)
		fprintf(to, "%s of %s runs", number__count(n).text, number__count(wanted).text);
	else
		fprintf(to, "%s %s", number__count(n).text, plural__of("run{|s}", n).text);
}

int runs_text__print(const struct profile *profile, FILE *to)
{
	struct figure_range range;
	int err = runs_text__range(profile, &range);

	if (err)
		return err;
	print_number(profile, to);
	if (range.min == range.max)
		fprintf(to, ": %s %s%s", number__count(range.min).text,
			plural__of("event{|s}", range.min).text,
			profile__n_runs(profile) > 1 ? " each time" : "");
	else
		fprintf(to, ": %s to %s events, median %s, spread %s",
			number__count(range.min).text, number__count(range.max).text,
			number__count(range.median).text,
			number__count(range.max - range.min).text);
	return 0;
}

int runs_text__print_subject(const struct profile *profile, FILE *to)
{
	char taken[RUNS_TEXT_SIZE];
	int err;

	if (runs_text__taken(profile, taken)) {
		fprintf(to, "%s\n", taken);
		return 0;
	}
	if (profile->n_runs < 2)
		return 0;
	err = runs_text__print(profile, to);
	if (err)
		return err;
	fputs("\nthe figures are sums of all runs", to);
	if (filter__has_live(profile))
		fprintf(to, ", but the peak is that of run %u, the highest",
			profile__peak_run(profile));
	fputs("; --run shows one\n", to);
	return 0;
}
