// SPDX-License-Identifier: GPL-3.0-or-later
/* Adds up what the engines of a session have counted, and decides whether that is complete. */
#include "session_internal.h"

#include <errno.h>
#include <stdio.h>

#include "cleanup.h"
#include "probed_file.h"
#include "profile.h"
#include "sources.h"

/* Calls that happened and are neither in the profile nor lost for a known reason are lost, too. */
static void settle(const struct session *session, struct session_results *results)
{
	__u64 known = results->not_sampled + results->attributed;

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		results->lost_total += results->lost[reason];
	/* Without stacks there is no ledger. */
	if (!session->options.stacks)
		return;
	known += results->lost_total;
	/* In a snapshot the number of calls was read before the counters. If it could not be read,
	 * missing calls cannot be counted. */
	if (results->events < known && (session->is_snapshot || results->gaps[GAP_COUNTERS_UNREAD]))
		results->events = known;
	results->lost[AP_LOST_UNACCOUNTED] = results->events - known;
	results->lost_total += results->lost[AP_LOST_UNACCOUNTED];
}

/* Exported functions whose effect on blocks is unknown. */
static int add_unknown(const struct session *session, const struct session_files *at)
{
	const struct engine *engine = session->engines[at->engine];
	size_t file = at->n_seen[at->engine] - 1;
	const char *name;
	int err = 0;
	bool ends;

	for (size_t i = 0; !err && (name = probed_file__unknown(&at->file, i, &ends)); i++) {
		struct profile_gap gap = {
			.kind = ends ? GAP_FUNCTION_ENDS : GAP_FUNCTION_UNKNOWN,
			.object = at->file.path,
			.detail = name,
		};

		/* Without live it does not matter whether it ends blocks. */
		if (!ends || session->options.live)
			gap.number = engine->operations->unknown_calls(engine, file, i);
		err = gap.number ? profile__add_gap(session->profile, &gap) : 0;
	}
	return err;
}

static int add_file(const struct session *session, enum gap kind, const char *path, const char *why)
{
	const struct profile_gap gap = { .kind = kind, .object = path, .detail = why };

	return *why ? profile__add_gap(session->profile, &gap) : 0;
}

static int add_files(const struct session *session)
{
	struct session_files at = { 0 };
	int err = 0;

	while (!err && session__next_file(session, &at)) {
		err = add_file(session, GAP_ALLOCATOR_UNPROBED, at.file.path, at.file.gap);
		if (!err)
			err = add_file(session, GAP_ALLOCATOR_UNFOLLOWED, at.file.path,
				       at.file.live_gap);
		if (!err)
			err = add_unknown(session, &at);
	}
	return err;
}

/* Whether no file of the run had any function of the source. */
static bool is_lacking(const struct session *session, const struct source *source)
{
	struct session_files at = { 0 };

	while (session__next_file(session, &at))
		for (size_t i = 0; i < source->n_functions; i++)
			if (probed_file__has(&at.file, source, i))
				return false;
	return true;
}

static int add_source(const struct session *session, const struct source *source)
{
	_cleanup_(free_ptr) char *detail = NULL;
	size_t size;
	FILE *to = open_memstream(&detail, &size);

	if (!to)
		return -ENOMEM;
	fputs(source->functions[0].name, to);
	for (size_t i = 0; i < source->n_modules; i++)
		fprintf(to, "\n%s", source->modules[i]);
	if (fclose(to))
		return -ENOMEM;
	return add_file(session, GAP_SOURCE_LACKING, source->name, detail);
}

static int add_sources(const struct session *session)
{
	const struct sources *sources = session->options.sources;
	int err = 0;

	for (size_t i = 0; sources && i < sources->n && !err; i++)
		if (is_lacking(session, &sources->list[i]))
			err = add_source(session, &sources->list[i]);
	return err;
}

static int add_numbers(const struct session *session)
{
	int err = 0;

	for (int kind = 0; kind < GAP_NUMBERS && !err; kind++) {
		const struct profile_gap gap = { .kind = (enum gap)kind,
						 .number = session->results.gaps[kind] };

		err = gap.number ? profile__add_gap(session->profile, &gap) : 0;
	}
	return err;
}

static bool is_window_complete(const struct session_window *window)
{
	return !window->asked_for || (window->opened && !window->undecided);
}

static bool are_numbers_complete(const struct session_results *results)
{
	if (results->has_live && (results->live.untracked || results->live.stats[AP_STAT_DROPPED]))
		return false;
	return !results->lost_total && !profile__has_gaps(results->gaps_of, false);
}

/* What a command that is measured from its exec on frees it has allocated, in a counted call. */
static bool sees_all_births(const struct session *session)
{
	const struct session_options *options = &session->options;

	return session->target.launched && options->live && !options->sample_bytes &&
	       !window_options__any(&options->window) && !session->marks.stops &&
	       !session->marks.resets;
}

static void add_target(const struct session *session, struct session_results *results)
{
	const struct target *target = &session->target;
	__u64 begin_ns = session->since_ns ? session->since_ns : target->start_ns;
	__u64 end_ns = session->is_snapshot ? session->cut_ns : target->end_ns, kills;

	results->interrupted = session->n_signals > 0;
	results->marks = session->marks;
	results->exit_status = target__exit_status(target);
	results->exit_signal = target__exit_signal(target);
	if (session->kills_fd >= 0 && memory_group__read_kills(session->kills_fd, &kills))
		results->oom_kills = kills - session->kills_before;
	results->group_limit_bytes = session->target_group.limit_bytes;
	results->is_in_group = session->is_in_group;
	results->own_bytes += memory_group__own_bytes();
	results->is_attached = !target->launched;
	/* A snapshot's target still runs. */
	results->target_runs = session->is_snapshot ||
			       (target->launched ? !target->waited : target__is_running(target));
	results->target_pid = target->pid;
	results->target_command = session->attached.command;
	results->target_rss_bytes = session->attached.rss_bytes;
	results->target_children = session->children;
	results->elapsed_seconds = (end_ns - begin_ns) / 1e9;
	results->user_seconds =
		target->usage.ru_utime.tv_sec + target->usage.ru_utime.tv_usec / 1e6;
	results->system_seconds =
		target->usage.ru_stime.tv_sec + target->usage.ru_stime.tv_usec / 1e6;
}

int session__collect_results(struct session *session)
{
	struct session_results *results = &session->results;
	int err = 0;

	session_lists__release(&session->lists);
	*results = (struct session_results){ .complete = true, .gaps_of = session->profile };
	/* First, so that the counters that this cannot read are among the results. */
	err = add_files(session);
	if (!err)
		err = add_sources(session);
	for (size_t i = 0; i < session->n_engines && !err; i++) {
		struct session_results one = { .complete = true };

		err = session__operations(session, i)->results(session->engines[i], &one);
		/* Each for itself, so that one's surplus cannot hide what another has lost. */
		settle(session, &one);
		if (!err)
			err = session_results__merge(results, &one, &session->lists);
	}
	if (err)
		return err;
	if (sees_all_births(session) && !results->live.untracked &&
	    !results->live.stats[AP_STAT_DROPPED] && !results->lost_total)
		for (int i = 0; i < AP_FAMILIES; i++)
			results->gaps[GAP_ALLOCATIONS_UNSEEN + i] =
				results->live.stats[AP_STAT_FREES_UNKNOWN + i];
	results->gaps[GAP_TORN] = session->torn_ms;
	err = add_numbers(session);
	if (err)
		return err;
	results->regions.complete = !profile__has_gaps(session->profile, true);
	if (!is_window_complete(&results->window) || !are_numbers_complete(results))
		results->complete = false;
	/* With a launched command its children are followed. */
	if (!session->target.launched && !session->children)
		err = attached__list_children(session->target.pid, &session->children);
	add_target(session, results);
	return err;
}

void session__results(const struct session *session, struct session_results *results)
{
	*results = session->results;
}
