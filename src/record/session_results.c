// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "allocator.h"
#include "allocprof.skel.h"
#include "collector.h"
#include "cpython.h"
#include "live.h"
#include "mappings.h"
#include "probes.h"
#include "regions.h"
#include "ring_reader.h"
#include "sources.h"

__u64 session__raw_stat(const struct session *session, __u32 which)
{
	__u64 sum;

	if (session->is_snapshot)
		return session->at_cut.stats[which];
	counters__sum(session->counters, bpf_map__fd(session->skeleton->maps.stats), &which, &sum,
		      1);
	return sum;
}

static __u64 stat_sum(const struct session *session, __u32 which)
{
	return session__raw_stat(session, which) - session->forgotten.stats[which];
}

static __u64 recursion_misses(const struct session *session, const struct bpf_program *program)
{
	return counters__recursion_misses(session->counters, program);
}

/* Times that the kernel skipped programs at system calls and USDT probes. */
static __u64 source_recursion_misses(const struct session *session)
{
	const struct sources *sources = session->options.sources;
	__u64 misses = 0;

	if (sources__has_mappings(sources))
		misses += mappings__recursion_misses(session->skeleton, session->counters);
	if (sources__any_usdt(sources))
		misses += recursion_misses(session, session__usdt_program(session));
	return misses;
}

/* Times that the kernel skipped programs at probes. */
__u64 session__recursion_misses(const struct session *session)
{
	const struct allocprof_bpf *skeleton = session->skeleton;

	if (session->is_snapshot)
		return session->at_cut.recursion;
	if (!session->live)
		return recursion_misses(session, session__entry_program(session)) +
		       source_recursion_misses(session);
	return source_recursion_misses(session) +
	       recursion_misses(session, session__entry_program(session)) +
	       recursion_misses(session, skeleton->progs.live_return_instruction) +
	       recursion_misses(session, skeleton->progs.live_free) +
	       recursion_misses(session, skeleton->progs.live_free_described) +
	       recursion_misses(session, session->sessions ? skeleton->progs.live_session
							   : skeleton->progs.live_return);
}

__u64 session__mappings_lost(const struct session *session)
{
	return mapping_events__lost(session->mapping_events) + session->mappings_dropped;
}

__u64 session__gate_recursion_misses(const struct session *session)
{
	if (session->is_snapshot)
		return session->at_cut.gate_recursion;
	if (!session_options__have_functions(&session->options))
		return 0;
	return recursion_misses(session, session->skeleton->progs.gate_event);
}

__u32 session__verified_instructions(const struct session *session)
{
	const struct bpf_program *program = session->live && session->sessions
						    ? session->skeleton->progs.live_session
						    : session__entry_program(session);
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.verified_insns;
}

static void sum_site(const struct session *session, __u32 site, struct ap_site_counts *sum)
{
	struct ap_site_counts counts;

	counters__sum(session->counters, bpf_map__fd(session->skeleton->maps.site_counts), &site,
		      (__u64 *)&counts, sizeof(counts) / sizeof(__u64));
	sum->calls += counts.calls;
	sum->internal += counts.internal;
	sum->size_bytes += counts.size_bytes;
	sum->fresh += counts.fresh;
	sum->fresh_size_bytes += counts.fresh_size_bytes;
	sum->released += counts.released;
	sum->null += counts.null;
	sum->failed += counts.failed;
	sum->returned_bytes += counts.returned_bytes;
}

const struct probed_allocator *session__allocators(const struct session *session, size_t *n)
{
	return probes__list(session->probes, n);
}

static void collect_functions(const struct session *session, struct session_results *results)
{
	const struct sources *sources = session->options.sources;
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(session->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; allocator && j < allocator->n_sites; j++) {
			const struct site *site = &allocator->sites[j];
			struct session_function *function = &results->functions[site->function];

			function->probed = true;
			sum_site(session, list[i].first_site + j, &function->counts);
			if (allocator->names[site->function].n >= function->n_aliases) {
				function->aliases = allocator->names[site->function].list;
				function->n_aliases = allocator->names[site->function].n;
			}
		}
		if (list[i].gap[0] || list[i].live_gap[0])
			results->complete = false;
		for (size_t j = 0; allocator && j < allocator->n_unknown; j++)
			if (session__unknown_calls(session, &list[i], j))
				results->complete = false;
	}
	for (size_t i = 0; sources && i < sources->n; i++)
		if (session__lacks_source(session, &sources->list[i]))
			results->complete = false;
}

const struct sources *session__sources(const struct session *session)
{
	return session->options.sources;
}

const struct source_names *session__source_names(const struct session *session)
{
	return session->options.sources ? &session->options.sources->names : NULL;
}

bool session__lacks_source(const struct session *session, const struct source *source)
{
	for (size_t i = 0; i < source->n_functions; i++)
		if (!probes__lacks(session->probes, source, i))
			return false;
	return true;
}

__u64 session__unknown_calls(const struct session *session,
			     const struct probed_allocator *allocator, size_t i)
{
	struct ap_site_counts sum = { 0 };

	/* Without live it does not matter whether it ends blocks. */
	if (allocator->allocator->unknown[i].ends && !session->live)
		return 0;
	sum_site(session, allocator->first_site + allocator->allocator->n_sites + i, &sum);
	return sum.calls;
}

__u64 session__count_site_calls(const struct session *session)
{
	struct ap_site_counts sum = { 0 };
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(session->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; allocator && j < allocator->n_sites; j++)
			if (allocator->sites[j].names & session->options.functions)
				sum_site(session, list[i].first_site + j, &sum);
	}
	return sum.calls;
}

static void collect_live(const struct session *session, struct session_results *results)
{
	const struct ap_live *shared = &session->skeleton->bss->live;
	struct session_live *live = &results->live;

	results->has_live = true;
	for (int i = 0; i < AP_STATS; i++)
		live->stats[i] = stat_sum(session, i);
	for (int i = 0; i < AP_FUNCTIONS && !session->options.stacks; i++)
		if (live__function(session->live, (enum ap_function)i, &live->functions[i]))
			session->counters->unread++;
	for (int i = 0; i < AP_UNTRACKED_REASONS; i++)
		live->untracked += live->stats[AP_STAT_UNTRACKED + i];
	live->unfinished = live->stats[AP_STAT_UNFINISHED] + live__unfinished(session->live);
	live->discarded = live__discarded(session->live, &live->discarded_bytes);
	live->blocks =
		live->stats[AP_STAT_ALLOCATIONS] - live->stats[AP_STAT_FREES] - live->discarded;
	live->size_bytes = live->stats[AP_STAT_ALLOCATED_BYTES] - live->stats[AP_STAT_FREED_BYTES] -
			   live->discarded_bytes;
	live->peak_bytes = shared->max_bytes;
	live->epoch_ns = live__epoch_ns(session->live);
	live__memory(session->live, &live->memory);
	if (live->untracked || live->stats[AP_STAT_DROPPED])
		results->complete = false;
}

__u64 session__count_events(const struct session *session)
{
	return session__raw_stat(session, AP_STAT_EVENTS) + session__recursion_misses(session) +
	       collector__found_within(session->collector) - session->forgotten_events;
}

__u64 session__count_lost(const struct session *session, enum ap_lost reason)
{
	__u64 lost = stat_sum(session, AP_STAT_LOST + reason);

	if (reason == AP_LOST_RECURSION)
		lost += session__recursion_misses(session) - session->forgotten.recursion;
	return lost;
}

static void collect_lost(const struct session *session, struct session_results *results)
{
	__u64 known;

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++) {
		results->lost[reason] = session__count_lost(session, reason);
		results->lost_total += results->lost[reason];
	}
	if (!session->options.stacks)
		return;
	results->not_sampled = stat_sum(session, AP_STAT_NOT_SAMPLED);
	known = results->lost_total + results->not_sampled +
		collector__attributed(session->collector);
	if (session->is_snapshot)
		results->events = session->events_at_cut > known ? session->events_at_cut : known;
	else
		results->events = session__count_events(session);
	/* If the counter of calls could not be read, missing calls cannot be counted. */
	if (results->events < known && session->counters->unread)
		results->events = known;
	results->lost[AP_LOST_UNACCOUNTED] = results->events - known;
	results->lost_total += results->lost[AP_LOST_UNACCOUNTED];
}

static bool is_anything_counted(const struct session_results *results)
{
	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (results->functions[i].counts.calls || results->functions[i].counts.internal)
			return true;
	return results->events > results->lost_total;
}

static void collect_window(const struct session *session, struct session_results *results)
{
	struct session_window *window = &results->window;

	if (!session->gate)
		return;
	window->asked_for = true;
	window->undecided =
		stat_sum(session, AP_STAT_UNDECIDED) + collector__undecided(session->collector);
	window->why = gate__never_opened(session->gate, is_anything_counted(results));
	window->opened = !window->why;
	window->unnoticed =
		session__gate_recursion_misses(session) - session->forgotten.gate_recursion;
	if (!window->opened || window->undecided || window->unnoticed ||
	    gate__check(session->gate, NULL))
		results->complete = false;
}

static void collect_regions(const struct session *session, struct session_results *results)
{
	struct session_regions *regions = &results->regions;

	regions->complete = true;
	if (!session->regions)
		return;
	regions->list = regions__list(session->regions, &regions->n);
	regions->unnoticed = recursion_misses(session, session->skeleton->progs.region_event);
	if (regions->unnoticed || session__region_gap(session, 0))
		regions->complete = false;
	for (int i = 0; i < AP_REGION_GAPS; i++) {
		regions->gaps[i] = stat_sum(session, AP_STAT_REGION_GAP + i);
		if (regions->gaps[i])
			regions->complete = false;
	}
}

const char *session__region_gap(const struct session *session, size_t index)
{
	return session->regions ? regions__gap(session->regions, index) : NULL;
}

void session__results(const struct session *session, struct session_results *results)
{
	const struct allocprof_bpf *skeleton = session->skeleton;
	const struct target *target = &session->target;
	__u64 end_ns, unread_before = session->counters->unread;

	memset(results, 0, sizeof(*results));
	results->interrupted = session->n_signals > 0;
	results->complete = true;
	collect_functions(session, results);
	collect_lost(session, results);
	if (session->live)
		collect_live(session, results);
	collect_window(session, results);
	collect_regions(session, results);
	results->marks = session->marks;
	results->processes = skeleton->bss->processes_seen - session->forgotten.processes;
	results->processes_unfollowed = stat_sum(session, AP_STAT_PROCESSES_LOST) +
					recursion_misses(session, skeleton->progs.on_fork) +
					recursion_misses(session, skeleton->progs.on_exec);
	results->processes_unnoticed = stat_sum(session, AP_STAT_PROCESSES_UNNOTICED) +
				       recursion_misses(session, skeleton->progs.on_exit);
	results->unprobed = session->unprobed.list;
	results->n_unprobed = session->unprobed.n;
	results->processes_unprobed = stat_sum(session, AP_STAT_UNPROBED);
	results->relabelled = stat_sum(session, AP_STAT_RELABELLED);
	results->not_nested = stat_sum(session, AP_STAT_NOT_NESTED);
	results->mappings_lost = session__mappings_lost(session) - session->forgotten.mappings_lost;
	results->mappings_unsure = stat_sum(session, AP_STAT_MAPPINGS_UNSURE);
	results->operands_unread = stat_sum(session, AP_STAT_OPERANDS_UNREAD);
	results->processes_left = session->processes_left;
	results->waits = skeleton->bss->waits.count;
	results->waits_ns = skeleton->bss->waits.total_ns;
	results->python_arenas = cpython__arenas(session->cpython);
	/* Results may be requested several times; count each failed read once. */
	results->counters_unread =
		session->unread_at_end + session->counters->unread - unread_before;
	if (results->lost_total || results->processes_unfollowed || results->processes_unnoticed ||
	    results->mappings_lost || results->counters_unread || results->processes_unprobed ||
	    results->not_nested || results->mappings_unsure || results->operands_unread)
		results->complete = false;
	results->exit_status = target__exit_status(target);
	results->is_attached = !target->launched;
	/* A snapshot's target still runs. */
	results->target_runs = session->is_snapshot ||
			       (target->launched ? !target->waited : target__is_running(target));
	results->target_pid = target->pid;
	end_ns = session->is_snapshot ? session->cut_ns : target->end_ns;
	results->elapsed_seconds =
		(end_ns - (session->since_ns ? session->since_ns : target->start_ns)) / 1e9;
	results->user_seconds =
		target->usage.ru_utime.tv_sec + target->usage.ru_utime.tv_usec / 1e6;
	results->system_seconds =
		target->usage.ru_stime.tv_sec + target->usage.ru_stime.tv_usec / 1e6;
}
