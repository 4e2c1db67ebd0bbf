// SPDX-License-Identifier: GPL-3.0-or-later
#include "completeness.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file.h"
#include "number.h"
#include "profile.h"
#include "profile_runs.h"
#include "reasons.h"
#include "text.h"

struct output {
	FILE *lines;
	unsigned int flags;
};

static void say(const struct output *output, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct output *output, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(output->lines, fmt, args);
	va_end(args);
	fputc('\n', output->lines);
}

/* Prints @n and @sentence, which has the form that plural__of() takes. */
static void say_number(const struct output *output, __u64 n, const char *sentence)
{
	say(output, "%s%s", number__count(n).text, plural__of(sentence, n).text);
}

/* Prints a line for each ledger entry that begins with @prefix. */
static void say_reasons(const struct profile *profile, const char *prefix,
			const struct output *output)
{
	size_t prefix_len = strlen(prefix);

	for (size_t i = 0; i < profile->n_ledger && !(output->flags & COMPLETENESS_BRIEF); i++) {
		const struct profile_ledger_entry *entry = &profile->ledger[i];
		const struct reason *reason = reason__by_ledger(entry->name);

		if (!entry->value || strncmp(entry->name, prefix, prefix_len))
			continue;
		if (reason)
			say(output, "  %s of them (%s): %s%s%s", number__count(entry->value).text,
			    reason->name, reason->sentence, reason->remedy ? "; " : "",
			    reason->remedy ? reason->remedy : "");
		else
			say(output, "  %s of them: %s", number__count(entry->value).text,
			    entry->name + prefix_len);
	}
}

static void report_lost(const struct profile *profile, const struct output *output)
{
	__u64 lost = profile__ledger(profile, "lost");

	if (!lost)
		return;
	say(output, "%s of %s calls %s lost; %s", number__count(lost).text,
	    number__count(profile__ledger(profile, "events")).text,
	    plural__of("{was|were}", lost).text, gap_text__effect(GAP_CALLS_LOST));
	say_reasons(profile, "lost_", output);
}

static void report_incomplete(const struct profile *profile, const struct output *output)
{
	__u64 incomplete = profile__ledger(profile, "incomplete");
	__u64 attributed = profile__ledger(profile, "attributed");

	/* Without --strict, too, this is said if most stacks are incomplete. */
	if (!incomplete || (!(output->flags & COMPLETENESS_STRICT) && incomplete <= attributed / 2))
		return;
	say(output, "%s of %s calls %s", number__count(incomplete).text,
	    number__count(attributed).text,
	    plural__of("{has a stack that is|have stacks that are}, or may be, incomplete",
		       incomplete)
		    .text);
	say_reasons(profile, "incomplete_", output);
}

static void say_gap(const struct output *output, const struct profile_gap *gap)
{
	_cleanup_(free_ptr) char *sentence = gap_text__sentence(gap);

	say(output, "%s; %s", sentence ? sentence : "out of memory", gap_text__effect(gap->kind));
}

static void report_gaps(const struct profile *profile, const struct output *output)
{
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);)
		say_gap(output, gap);
}

/* Reports files whose names could not be read. No calls are missing because of these. */
static void report_unread(const struct profile *profile, const struct output *output)
{
	const char *lines = profile__meta(profile, "unread_files");

	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");

		say(output, "names are missing: %.*s", len < 1024 ? (int)len : 1024, lines);
		lines += len + (lines[len] == '\n');
	}
}

bool completeness__is_complete(const struct profile *profile)
{
	static const char *const missing[] = { "lost", "untracked", "blocks_dropped", "undecided" };
	const char *opened = profile__meta(profile, "window_opened");

	if (data_file__is_altered(profile) || profile__has_gaps(profile, false))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
		if (profile__ledger(profile, missing[i]))
			return false;
	return !(opened && *opened == '0') && profile__ledger_adds_up(profile);
}

bool completeness__has_ended(const struct profile *profile)
{
	for (__u32 run = 1; run <= profile__n_runs(profile); run++)
		if (!profile__run_meta(profile, run, "exit_status"))
			return false;
	return true;
}

static void report_untracked(const struct profile *profile, const struct output *output)
{
	__u64 untracked = profile__ledger(profile, "untracked");

	if (!untracked)
		return;
	say(output, "the blocks of %s of %s calls are not followed; %s",
	    number__count(untracked).text,
	    number__count(profile__ledger(profile, "attributed")).text,
	    gap_text__effect(GAP_CALLS_UNTRACKED));
	say_reasons(profile, "untracked_", output);
}

static void report_dropped(const struct profile *profile, const struct output *output)
{
	__u64 blocks = profile__ledger(profile, "blocks_dropped");

	if (blocks)
		say_gap(output, &(struct profile_gap){ .kind = GAP_BLOCKS_DROPPED,
						       .number = blocks,
						       .object = "",
						       .detail = "" });
}

/* Reports blocks whose end is missing from what is shown by time, or from histograms. Everything
 * else about these blocks is known. */
static void report_times(const struct profile *profile, const struct output *output)
{
	__u64 blocks = profile__ledger(profile, "lifetimes_missing");

	if (blocks && output->flags & COMPLETENESS_TIMES)
		say_number(output, blocks,
			   " block{|s} {is|are} missing from what is shown by time: "
			   "when {it|they} began and ended is not in this profile");
}

static void report_histograms(const struct profile *profile, const struct output *output)
{
	__u64 blocks = profile__ledger(profile, "histograms_missing");

	if (blocks && output->flags & COMPLETENESS_HISTOGRAMS)
		say_number(output, blocks, " block{|s} {is|are} missing from the histograms");
}

static void report_window(const struct profile *profile, const struct output *output)
{
	const char *opened = profile__meta(profile, "window_opened");
	__u64 undecided = profile__ledger(profile, "undecided");

	if (!opened)
		return;
	if (*opened == '0')
		say(output, "nothing was measured%s: the window of the recording never opened",
		    profile->n_runs > 1 ? " in one of the runs or more" : "");
	if (undecided)
		say_gap(output, &(struct profile_gap){ .kind = GAP_UNDECIDED,
						       .number = undecided,
						       .object = "",
						       .detail = "" });
}

/* Prints everything that @profile lacks. */
static void report_all(const struct profile *profile, const struct output *output)
{
	if (data_file__is_altered(profile))
		say(output, "%s", ALTERED_NOTE);
	report_lost(profile, output);
	report_gaps(profile, output);
	report_untracked(profile, output);
	report_dropped(profile, output);
	report_times(profile, output);
	report_histograms(profile, output);
	report_window(profile, output);
	report_incomplete(profile, output);
	report_unread(profile, output);
	if (!profile__ledger_adds_up(profile))
		say(output, "the ledger of this data file does not add up; do not rely on its "
			    "totals");
	if (!profile__blocks_add_up(profile))
		say(output, "the blocks of this data file do not add up; do not rely on what it "
			    "says of live and freed memory");
}

int completeness__lines(const struct profile *profile, unsigned int flags, char **text)
{
	struct output output = { .flags = flags };
	char *made = NULL;
	size_t size;

	output.lines = open_memstream(&made, &size);
	if (!output.lines)
		return -ENOMEM;
	report_all(profile, &output);
	if (fclose(output.lines)) {
		free(made);
		return -ENOMEM;
	}
	*text = made;
	return 0;
}

char *completeness__sampled(const struct profile *profile)
{
	__u64 bytes = profile__sample_bytes(profile);
	char *text;

	__u64 unseen = profile__unseen_bytes(profile);
	int len;

	if (!bytes)
		return NULL;
	if (bytes == 1 && profile__is_weighted(profile))
		return strdup("samples that probes told of count by their weight: numbers of these "
			      "are estimates");
	if (unseen)
		len = asprintf(
			&text,
			"one byte of %s was sampled: all numbers are estimates, and what has "
			"no sample is less than %s bytes",
			number__count(bytes).text, number__count(unseen).text);
	else
		len = asprintf(&text, "one byte of %s was sampled: all numbers are estimates",
			       number__count(bytes).text);
	return len < 0 ? NULL : text;
}
