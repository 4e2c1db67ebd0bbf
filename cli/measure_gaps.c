// SPDX-License-Identifier: GPL-3.0-or-later
#include "measure_gaps.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "completeness_messages.h"
#include "gaps.h"
#include "measure_options.h"
#include "message.h"
#include "number.h"
#include "plural.h"
#include "probed_file.h"
#include "reasons.h"
#include "recording_text.h"
#include "session.h"
#include "sources.h"
#include "stat_regions.h"
#include "window_options.h"

struct visit {
	const struct session *session;
	const struct session_results *results;
	measure_gaps_say say;
	void *context;
};

static void say(const struct visit *visit, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct visit *visit, const char *fmt, ...)
{
	_cleanup_(free_ptr) char *text = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		text = NULL;
	visit->say(visit->context, text ? text : "not complete: out of memory");
}

/* Functions that an allocator exports, and of which it is not known what they do. */
static void say_unknown(const struct visit *visit, size_t index, const struct probed_file *file)
{
	struct session_unknown unknown;

	for (size_t i = 0; session__unknown(visit->session, index, i, &unknown); i++) {
		__u64 calls = unknown.calls;

		if (calls && unknown.ends)
			say(visit,
			    "not complete: %s: %s was called %s %s, which ended blocks, and it "
			    "is not known which: they count as live",
			    file->path, unknown.name, number__count(calls).text,
			    plural__of("time{|s}", calls).text);
		else if (calls)
			say(visit,
			    "not complete: %s exports %s, which is not known: %s %s "
			    "not counted (--ignore=%s where it hands out no memory)",
			    file->path, unknown.name, number__count(calls).text,
			    plural__of("call{|s} of it {is|are}", calls).text, unknown.name);
	}
}

struct patterns_text {
	char text[256];
};

/* " named A, B or C": the file patterns of a source, truncated; "" for any file. */
static struct patterns_text patterns_of(const struct source *source)
{
	struct patterns_text patterns = { "" };
	size_t len = 0;

	for (size_t i = 0; i < source->n_modules && len < sizeof(patterns.text); i++) {
		const char *before = " named ";

		if (i)
			before = i + 1 == source->n_modules ? " or " : ", ";
		len += snprintf(patterns.text + len, sizeof(patterns.text) - len, "%s%s", before,
				source->modules[i]);
	}
	return patterns;
}

static void say_sources(const struct visit *visit)
{
	const struct sources *sources = session__sources(visit->session);

	for (size_t i = 0; sources && i < sources->n; i++)
		if (session__lacks_source(visit->session, &sources->list[i]))
			say(visit,
			    "not complete: no file of the target%s has a function of %s, such as "
			    "%s: its calls are not counted (where a file is loaded later, name it "
			    "with --expect)",
			    patterns_of(&sources->list[i]).text, sources->list[i].name,
			    sources->list[i].functions[0].name);
}

static void say_unprobed(const struct visit *visit)
{
	const struct session_results *results = visit->results;
	__u64 listed = 0;

	for (size_t i = 0; i < results->n_unprobed; i++) {
		const struct unprobed_program *program = &results->unprobed[i];

		const struct plural_text processes = plural__of("process{|es}", program->processes);

		listed += program->processes;
		if (program->why) {
			say(visit, "not complete: %s %s of the program %s (%u), %s%s%s",
			    number__count(program->processes).text, processes.text, program->name,
			    program->pid, program->why,
			    program->remedy ? ": the preloaded library does not see its calls; "
					    : "",
			    program->remedy ? program->remedy : "");
			continue;
		}
		say(visit,
		    "not complete: %s %s of the program %s (%u) took %s bytes from the "
		    "kernel and called no function that is probed: its allocator is unknown; "
		    "define it (allocprof-allocators(5))",
		    number__count(program->processes).text, processes.text, program->name,
		    program->pid, number__count(program->size_bytes).text);
	}
	if (results->processes_unprobed > listed)
		say(visit,
		    "not complete: %s %s took memory from the kernel and called no "
		    "function that is probed",
		    number__count(results->processes_unprobed - listed).text,
		    plural__of("other process{|es}", results->processes_unprobed - listed).text);
}

static void say_counts(const struct visit *visit)
{
	const struct session_results *results = visit->results;

	for (int gap = 0; gap < GAPS; gap++) {
		const struct gap_text *text = gap__text(gap);
		__u64 n = results->gaps[gap];

		if (n)
			say(visit, "%s: %s%s", text->effect ? "not exact" : "not complete",
			    number__count(n).text, plural__of(text->sentence, n).text);
	}
	if (results->relabelled)
		say(visit, "not exact: %s %s", number__count(results->relabelled).text,
		    plural__of("call{|s} {is|are} counted under the function that {it|they} led to",
			       results->relabelled)
			    .text);
}

void measure_gaps__visit(const struct session *session, const struct session_results *results,
			 measure_gaps_say callback, void *context)
{
	const struct visit visit = { session, results, callback, context };
	struct probed_file file;

	for (size_t i = 0; session__file(session, i, &file); i++)
		if (file.gap[0])
			say(&visit, "not complete: allocator %s was %s", file.path, file.gap);
	for (size_t i = 0; session__file(session, i, &file); i++)
		say_unknown(&visit, i, &file);
	say_sources(&visit);
	say_unprobed(&visit);
	for (size_t i = 0; i < results->n_engine_gaps; i++)
		say(&visit, "not complete: %s", results->engine_gaps[i]);
	say_counts(&visit);
}

static void print(void *context, const char *sentence)
{
	message__print("%s", sentence);
}

/* "not complete: " @before, the number, @after, and the reason. */
static void print_reason(__u64 n, const char *before, const char *after,
			 const struct reason *reason)
{
	message__print("not complete: %s%s %s (%s): %s%s%s", before, number__count(n).text,
		       plural__of(after, n).text, reason->name, reason->sentence,
		       reason->remedy ? "; " : "", reason->remedy ? reason->remedy : "");
}

static void print_live_gaps(const struct session *session, const struct session_live *live)
{
	struct probed_file file;

	for (size_t i = 0; session__file(session, i, &file); i++)
		if (file.live_gap[0])
			message__print("not complete: the blocks of allocator %s were %s",
				       file.path, file.live_gap);
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		if (live->stats[AP_STAT_UNTRACKED + reason])
			print_reason(live->stats[AP_STAT_UNTRACKED + reason], "the blocks of ",
				     "call{|s} are not followed", reason__untracked(reason));
	if (live->stats[AP_STAT_DROPPED])
		message__print(
			"not complete: %s %s", number__count(live->stats[AP_STAT_DROPPED]).text,
			plural__of(
				"block{|s} that a failed realloc kept, or that ended within interrupted calls, {is|are} not followed any more, and count{s|} as live",
				live->stats[AP_STAT_DROPPED])
				.text);
}

struct recording_target measure_gaps__target(const struct session_results *results, char *pid,
					     size_t size)
{
	snprintf(pid, size, "%d", results->target_pid);
	return (struct recording_target){
		.pid = results->is_attached ? pid : NULL,
		.rss_bytes = results->target_rss_bytes,
		.children = results->target_children,
		.impossible = results->impossible,
		.exit_signal = results->exit_signal,
		.oom_kills = results->oom_kills,
		.group_bytes = results->group_limit_bytes,
		.is_in_group = results->is_in_group,
		.own_bytes = results->own_bytes,
	};
}

/* What is no gap of the numbers, but has to be known to read them. */
static void print_target(const struct measure *measure, const struct session_results *results)
{
	char pid[16];
	struct recording_target target = measure_gaps__target(results, pid, sizeof(pid));

	/* What stat prints has these, and JSON may go to stderr, too. */
	if (!measure->session.stacks)
		target.impossible = target.exit_signal = target.oom_kills = target.is_in_group = 0;
	completeness_messages__print_beside(&target);
	if (results->target_runs)
		message__print("process %d goes on without probes", results->target_pid);
	else if (results->is_attached)
		message__print("process %d has ended, and the recording with it",
			       results->target_pid);
}

void measure__report_gaps(const struct measure *measure, const struct session *session,
			  const struct session_results *results)
{
	measure_gaps__visit(session, results, print, NULL);
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		if (results->lost[reason])
			print_reason(results->lost[reason], "", "call{|s} lost",
				     reason__lost(reason));
	if (results->has_live)
		print_live_gaps(session, &results->live);
	completeness_messages__print_own_heaps(results->own_heaps);
	if (results->common_names)
		message__print("%s %s", number__count(results->common_names).text,
			       plural__of(NAMES_NOTE_WORDS, results->common_names).text);
	window_options__report_gaps(&results->window);
	stat_regions__report_gaps(session, results);
	if (measure->quiet)
		return;
	print_target(measure, results);
	if (results->processes_left)
		message__print("%s %s on without probes",
			       number__count(results->processes_left).text,
			       plural__of("process{|es} that the command started go{es|}",
					  results->processes_left)
				       .text);
}

/* Processor time that the probes take for each call that was counted, docs/cost.md: rounded down. With stacks and live
 * it includes the free. */
static double us_per_call(const struct session_options *options)
{
	if (options->stacks)
		return options->live ? 4 : 1;
	return options->live ? 2 : 0.7;
}

/* A lower cost is not worth a message. */
#define LEAST_SECONDS 0.3

static double probes_seconds(const struct session_options *options,
			     const struct session_results *results)
{
	__u64 calls = results->events;

	for (int i = 0; i < AP_DEFINED; i++)
		calls += results->functions[i].counts.calls + results->functions[i].counts.internal;
	return us_per_call(options) / 1e6 * calls;
}

/* False if the user chose the engine or uses what only uprobes have. */
static bool may_suggest_engine(const struct measure *measure, const struct session *session)
{
	const struct session_options *options = &measure->session;

	return !measure->quiet && measure->argv && options->engine == SESSION_ENGINE_AUTO &&
	       !strcmp(session__engine(session), "uprobe") && !options->events_path &&
	       !session__sources(session) && !session_options__have_functions(options);
}

void measure__suggest_engine(const struct measure *measure, const struct session *session,
			     const struct session_results *results)
{
	double all = results->user_seconds + results->system_seconds;
	double probes = probes_seconds(&measure->session, results);

	/* The times of a command that outlives the measurement are not known. */
	if (!may_suggest_engine(measure, session) || probes < LEAST_SECONDS ||
	    results->target_runs || probes < all - probes)
		return;
	message__print("the probes took about %.1f of %.1f seconds of processor time; "
		       "--engine=preload counts without them",
		       probes < all ? probes : all, all);
}
