// SPDX-License-Identifier: GPL-3.0-or-later
#include "measure_gaps.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "completeness_messages.h"
#include "measure_options.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "recording_text.h"
#include "reasons.h"
#include "session.h"
#include "text.h"

static void say_gap(const struct profile_gap *gap, measure_gaps_say say, void *context)
{
	_cleanup_(free_ptr) char *sentence = gap_text__sentence(gap), *text = NULL;

	if (asprintf(&text, "%s: %s", gap_text__verdict(gap->kind), sentence ?: "out of memory") <
	    0)
		text = NULL;
	say(context, text ?: gap_text__verdict(gap->kind));
}

static void say_number(enum gap kind, __u64 number, measure_gaps_say say, void *context)
{
	if (number)
		say_gap(
			&(struct profile_gap){
				.kind = kind, .number = number, .object = "", .detail = "" },
			say, context);
}

void measure_gaps__visit(const struct profile *profile, bool of_regions, measure_gaps_say say,
			 void *context)
{
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);)
		if (gap__is_of_regions(gap->kind) == of_regions)
			say_gap(gap, say, context);
	if (of_regions)
		return;
	say_number(GAP_RELABELLED, profile->totals.relabelled, say, context);
	say_number(GAP_BLOCKS_DROPPED, profile->totals.live.stats[AP_STAT_DROPPED], say, context);
	say_number(GAP_UNDECIDED, profile__ledger(profile, "undecided"), say, context);
}

/* A measure_gaps_say that prints the sentence as a message; @context is not used. */
static void measure_gaps__print(void *context, const char *sentence)
{
	message__print("%s", sentence);
}

static void print_reason(enum gap kind, __u64 n, const struct reason *reason)
{
	_cleanup_(free_ptr) char *why = NULL;

	if (!n || asprintf(&why, "%s%s%s", reason->sentence, reason->remedy ? "; " : "",
			   reason->remedy ? reason->remedy : "") < 0)
		return;
	say_gap(
		&(struct profile_gap){
			.kind = kind, .number = n, .object = reason->name, .detail = why },
		measure_gaps__print, NULL);
}

static void print_going_on(const struct profile *profile)
{
	_cleanup_(free_ptr) char *text = NULL;

	if (!recording_text__goes_on(profile, &text))
		message__print("%s", text);
}

/* Prints what a reader has to know beside the numbers to understand them. The report of stat
 * contains the rest; its JSON may go to stderr, too. */
static void print_target(const struct measure *measure, const struct profile *profile)
{
	const struct target_run *run = &profile->totals.run;

	completeness_messages__print_beside(profile, !measure->session.stacks);
	if (recording_text__has_left(profile))
		print_going_on(profile);
	else if (run->is_attached && profile__meta(profile, "attached_pids"))
		message__print("all of the processes have ended");
	else if (run->is_attached)
		message__print("process %d has ended, and the recording with it", run->pid);
}

void measure_gaps__report(const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;

	measure_gaps__visit(profile, false, measure_gaps__print, NULL);
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		print_reason(GAP_CALLS_LOST, profile__lost(profile, reason), reason__lost(reason));
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		print_reason(GAP_CALLS_UNTRACKED, totals->live.stats[AP_STAT_UNTRACKED + reason],
			     reason__untracked(reason));
	completeness_messages__print_runtimes(profile);
	if (totals->window.why)
		message__print("nothing was measured: %s", totals->window.why);
	measure_gaps__visit(profile, true, measure_gaps__print, NULL);
}

void measure__report_gaps(const struct measure *measure, const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;

	measure_gaps__report(profile);
	if (measure->quiet)
		return;
	print_target(measure, profile);
	if (totals->processes_left && !totals->run.is_attached)
		message__print("%s %s on without probes",
			       number__count(totals->processes_left).text,
			       plural__of("process{|es} that the command started go{es|}",
					  totals->processes_left)
				       .text);
}

/* Returns the processor time in microseconds that the probes take for each call that was counted,
 * rounded down (docs/cost.md). With stacks and --live it includes the call of free. */
static double us_per_call(const struct session_options *options)
{
	if (options->stacks)
		return options->live ? 4 : 1;
	return options->live ? 2 : 0.7;
}

/* If the probes took fewer seconds than this, there is no message. */
#define LEAST_SECONDS 0.3

/* Least time that a single-stepped hit takes, in seconds, for machines where it could not be
 * measured. */
#define LEAST_STEPPED_SECONDS 3e-6

static void name_functions(__u64 functions, char *text, size_t size)
{
	size_t used = 0;

	for (int i = 0; i < AP_FUNCTIONS && used < size; i++) {
		bool is_last = !(functions >> i >> 1);

		if (functions >> i & 1)
			used += snprintf(text + used, size - used, "%s%s",
					 !used	   ? ""
					 : is_last ? " and "
						   : ", ",
					 profile__function_name(i));
	}
}

void measure__tell_stepped(const struct measure *measure, const struct profile *profile)
{
	const struct stepped_totals *stepped = &profile->totals.stepped;
	const struct target_run *run = &profile->totals.run;
	double all = run->user_seconds + run->system_seconds;
	double each = stepped->hit_seconds ?: LEAST_STEPPED_SECONDS;
	char names[256] = "";

	/* With -p the processor time of the process is unknown. */
	if (all == 0)
		all = run->elapsed_seconds;
	if (measure->quiet || each * stepped->calls < LEAST_SECONDS ||
	    each * stepped->calls < all / 10)
		return;
	name_functions(stepped->functions, names, sizeof(names));
	message__print("the probes of %s are single-stepped: %s calls took %s%.1f us each, about "
		       "%.1f of %.1f seconds; allocprof doctor says why",
		       names, number__count(stepped->calls).text,
		       stepped->hit_seconds ? "" : "at least ", each * 1e6, each * stepped->calls,
		       all);
}

static double probes_seconds(const struct session_options *options, const struct profile *profile)
{
	__u64 calls = profile__ledger(profile, "events");

	for (int i = 0; i < AP_DEFINED; i++)
		calls += profile->totals.functions[i].counts.calls +
			 profile->totals.functions[i].counts.internal;
	return us_per_call(options) / 1e6 * calls;
}

/* Returns whether another engine may be suggested: not if the user has chosen the engine, or uses
 * something that only uprobes have. */
static bool may_suggest_engine(const struct measure *measure, const struct profile *profile)
{
	const struct session_options *options = &measure->session;

	return !measure->quiet && options->engine == SESSION_ENGINE_AUTO &&
	       !strcmp(profile__engine(profile), "uprobe") && !options->events_path &&
	       !definitions__any(&measure->definitions) &&
	       !session_options__have_functions(options);
}

void measure__suggest_engine(const struct measure *measure, const struct profile *profile)
{
	double all = profile->totals.run.user_seconds + profile->totals.run.system_seconds;
	double probes = probes_seconds(&measure->session, profile);

	if (!may_suggest_engine(measure, profile) || probes < LEAST_SECONDS)
		return;
	/* For a process that goes on, the processor time is unknown, so this compares with the
	 * elapsed time. */
	if (measure->pid && probes >= profile->totals.run.elapsed_seconds / 10)
		message__print("the probes took about %.1f seconds of processor time in %.1f "
			       "seconds; --engine=preload counts without them",
			       probes, profile->totals.run.elapsed_seconds);
	if (measure->pid || profile->totals.run.runs || probes < all - probes)
		return;
	message__print("the probes took about %.1f of %.1f seconds of processor time; "
		       "--engine=preload counts without them",
		       probes < all ? probes : all, all);
}
