// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads at the end what the programs have counted and lost. */
#include "uprobe_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "allocator.h"
#include "allocprof.skel.h"
#include "collector.h"
#include "elf_file.h"
#include "event_collector.h"
#include "gate.h"
#include "live.h"
#include "mappings.h"
#include "probes.h"
#include "probed_file.h"
#include "profile.h"
#include "regions.h"
#include "ring_reader.h"
#include "runtimes.h"
#include "sources.h"
#include "tracepoints.h"
#include "uprobe_engine.h"

__u64 uprobe__raw_stat(const struct uprobe *uprobe, __u32 which)
{
	__u64 sum;

	if (uprobe->is_snapshot)
		return uprobe->at_cut.stats[which];
	counters__sum(uprobe->counters, bpf_map__fd(uprobe->skeleton->maps.stats), &which, &sum, 1);
	return sum;
}

static __u64 stat_sum(const struct uprobe *uprobe, __u32 which)
{
	return uprobe__raw_stat(uprobe, which) - uprobe->forgotten.stats[which];
}

static __u64 recursion_misses(const struct uprobe *uprobe, struct bpf_program *program)
{
	return counters__recursion_misses(uprobe->counters, uprobe__loaded(uprobe, program));
}

static __u64 missed_at(const struct uprobe *uprobe, enum ap_tracepoint at)
{
	return tracepoints__missed(uprobe->skeleton, at, uprobe->counters);
}

/* Times that the kernel skipped programs at system calls and USDT probes. */
static __u64 source_recursion_misses(const struct uprobe *uprobe)
{
	const struct sources *sources = uprobe->options.sources;
	__u64 misses = 0;

	if (sources__has_mappings(sources))
		misses += mappings__recursion_misses(uprobe->skeleton, uprobe->counters);
	if (sources__any_usdt(sources))
		misses += recursion_misses(uprobe, uprobe__usdt_program(uprobe));
	return misses;
}

/* Times that the kernel skipped programs at probes. */
__u64 uprobe__recursion_misses(const struct uprobe *uprobe)
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;

	if (uprobe->is_snapshot)
		return uprobe->at_cut.recursion;
	if (!uprobe->live)
		return recursion_misses(uprobe, uprobe__entry_program(uprobe)) +
		       source_recursion_misses(uprobe);
	return source_recursion_misses(uprobe) +
	       recursion_misses(uprobe, uprobe__entry_program(uprobe)) +
	       recursion_misses(uprobe, skeleton->progs.live_return_instruction) +
	       recursion_misses(uprobe, skeleton->progs.live_free) +
	       recursion_misses(uprobe, skeleton->progs.live_free_described) +
	       recursion_misses(uprobe, uprobe->sessions ? skeleton->progs.live_session
							 : skeleton->progs.live_return);
}

__u64 uprobe__mappings_lost(const struct uprobe *uprobe)
{
	return mapping_events__lost(uprobe->mapping_events) + uprobe->mappings_dropped;
}

__u64 uprobe__gate_recursion_misses(const struct uprobe *uprobe)
{
	if (uprobe->is_snapshot)
		return uprobe->at_cut.gate_recursion;
	if (!session_options__have_functions(&uprobe->options))
		return 0;
	return recursion_misses(uprobe, uprobe->skeleton->progs.gate_event);
}

static void sum_site(const struct uprobe *uprobe, __u32 site, struct ap_site_counts *sum)
{
	struct ap_site_counts counts;

	counters__sum(uprobe->counters, bpf_map__fd(uprobe->skeleton->maps.site_counts), &site,
		      (__u64 *)&counts, sizeof(counts) / sizeof(__u64));
	site_counts__add(sum, &counts);
}

static void collect_functions(const struct uprobe *uprobe, struct session_results *results)
{
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(uprobe->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; list[i].has_sites && j < allocator->n_sites; j++) {
			const struct site *site = &allocator->sites[j];
			struct session_function *function = &results->functions[site->function];

			function->probed = true;
			sum_site(uprobe, list[i].first_site + j, &function->counts);
			if (allocator->names[site->function].n >= function->n_aliases) {
				function->aliases = allocator->names[site->function].list;
				function->n_aliases = allocator->names[site->function].n;
			}
		}
	}
}

bool uprobe__file(const struct engine *engine, size_t index, struct probed_file *out)
{
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(uprobe__of(engine)->probes, &n);
	if (index >= n)
		return false;
	*out = probed_allocator__file(&list[index]);
	return true;
}

__u64 uprobe__unknown_calls(const struct engine *engine, size_t file, size_t index)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	struct ap_site_counts sum = { 0 };
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(uprobe->probes, &n);
	if (list[file].has_sites)
		sum_site(uprobe, list[file].first_site + list[file].allocator->n_sites + index,
			 &sum);
	return sum.calls;
}

__u64 uprobe__count_site_calls(const struct uprobe *uprobe)
{
	struct ap_site_counts sum = { 0 };
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(uprobe->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; list[i].has_sites && j < allocator->n_sites; j++)
			if (allocator->sites[j].names & uprobe->options.functions)
				sum_site(uprobe, list[i].first_site + j, &sum);
	}
	return sum.calls;
}

static void collect_live(const struct uprobe *uprobe, struct session_results *results)
{
	const struct ap_live *shared = &uprobe->skeleton->bss->live;
	struct session_live *live = &results->live;

	results->has_live = true;
	for (int i = 0; i < AP_STATS; i++)
		live->stats[i] = stat_sum(uprobe, i);
	for (int i = 0; i < AP_FUNCTIONS && !uprobe->options.stacks; i++)
		if (live__function(uprobe->live, (enum ap_function)i, &live->functions[i]))
			uprobe->counters->unread++;
	for (int i = 0; i < AP_UNTRACKED_REASONS; i++)
		live->untracked += live->stats[AP_STAT_UNTRACKED + i];
	live->unfinished = live->stats[AP_STAT_UNFINISHED] + live__unfinished(uprobe->live);
	live->discarded = live__discarded(uprobe->live, &live->discarded_bytes);
	live->blocks =
		live->stats[AP_STAT_ALLOCATIONS] - live->stats[AP_STAT_FREES] - live->discarded;
	live->size_bytes = live->stats[AP_STAT_ALLOCATED_BYTES] - live->stats[AP_STAT_FREED_BYTES] -
			   live->discarded_bytes;
	live->peak_bytes = shared->max_bytes;
	live->epoch_ns = live__epoch_ns(uprobe->live);
	live__memory(uprobe->live, &live->memory);
}

__u64 uprobe__count_events(const struct uprobe *uprobe)
{
	return uprobe__raw_stat(uprobe, AP_STAT_EVENTS) + uprobe__recursion_misses(uprobe) +
	       collector__found_within(uprobe->collector) - uprobe->forgotten_events;
}

__u64 uprobe__count_lost(const struct uprobe *uprobe, enum ap_lost reason)
{
	__u64 lost = stat_sum(uprobe, AP_STAT_LOST + reason);

	if (reason == AP_LOST_RECURSION)
		lost += uprobe__recursion_misses(uprobe) - uprobe->forgotten.recursion;
	return lost;
}

static void collect_lost(const struct uprobe *uprobe, struct session_results *results)
{
	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		results->lost[reason] += uprobe__count_lost(uprobe, reason);
	if (!uprobe->options.stacks)
		return;
	results->not_sampled += stat_sum(uprobe, AP_STAT_NOT_SAMPLED);
	results->attributed += collector__attributed(uprobe->collector);
	results->events +=
		uprobe->is_snapshot ? uprobe->events_at_cut : uprobe__count_events(uprobe);
}

static bool is_anything_counted(const struct session_results *results)
{
	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (results->functions[i].counts.calls || results->functions[i].counts.internal)
			return true;
	return results->not_sampled + results->attributed > 0;
}

static void collect_window(const struct uprobe *uprobe, struct session_results *results)
{
	struct session_window *window = &results->window;

	if (!uprobe->gate)
		return;
	window->asked_for = true;
	window->undecided =
		stat_sum(uprobe, AP_STAT_UNDECIDED) + collector__undecided(uprobe->collector);
	window->why = gate__never_opened(uprobe->gate, is_anything_counted(results));
	window->opened = !window->why;
	results->gaps[GAP_WINDOW_UNNOTICED] =
		uprobe__gate_recursion_misses(uprobe) - uprobe->forgotten.gate_recursion;
	if (gate__check(uprobe->gate, NULL))
		results->complete = false;
}

static void collect_regions(const struct uprobe *uprobe, struct session_results *results)
{
	struct session_regions *regions = &results->regions;

	if (!uprobe->regions)
		return;
	regions->list = regions__list(uprobe->regions, &regions->n);
	results->gaps[GAP_REGION_UNNOTICED] =
		recursion_misses(uprobe, uprobe->skeleton->progs.region_event);
	for (int i = 0; i < AP_REGION_GAPS; i++)
		results->gaps[GAP_REGION_DEPTH + i] = stat_sum(uprobe, AP_STAT_REGION_GAP + i);
}

static int add_programs(const struct uprobe *uprobe, struct session_results *results)
{
	__u64 listed = 0;
	int err = 0;

	for (size_t i = 0; i < uprobe->unprobed.n && !err; i++) {
		const struct unprobed_program *program = &uprobe->unprobed.list[i];
		struct profile_gap gap = {
			.kind = GAP_PROGRAM_UNPROBED,
			.number = program->processes,
			.size_bytes = program->size_bytes,
			.pid = program->pid,
			.object = program->name,
		};

		if (probes__is_foreign(uprobe->probes, program->pid)) {
			gap.kind = GAP_PROGRAM_FOREIGN;
			gap.detail = ELF_OTHER_MACHINE;
		}
		listed += program->processes;
		err = profile__add_gap(uprobe->profile, &gap);
	}
	results->processes_unprobed = stat_sum(uprobe, AP_STAT_UNPROBED);
	if (results->processes_unprobed > listed)
		results->gaps[GAP_OTHERS_UNPROBED] = results->processes_unprobed - listed;
	return err;
}

int uprobe__results(struct engine *engine, struct session_results *results)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	const struct allocprof_bpf *skeleton = uprobe->skeleton;
	int err;

	collect_functions(uprobe, results);
	collect_lost(uprobe, results);
	if (uprobe->live)
		collect_live(uprobe, results);
	if (uprobe->events)
		event_collector__results(uprobe->events, &results->events_log);
	else if (uprobe->is_snapshot)
		results->events_log = uprobe->log_at_cut;
	collect_window(uprobe, results);
	collect_regions(uprobe, results);
	results->processes = skeleton->bss->processes_seen - uprobe->forgotten.processes;
	results->gaps[GAP_PROCESSES_UNFOLLOWED] = stat_sum(uprobe, AP_STAT_PROCESSES_LOST) +
						  missed_at(uprobe, AP_TRACEPOINT_FORK) +
						  missed_at(uprobe, AP_TRACEPOINT_EXEC);
	results->gaps[GAP_PROCESSES_REFUSED] = stat_sum(uprobe, AP_STAT_PROCESSES_REFUSED);
	results->gaps[GAP_PROCESSES_UNNOTICED] =
		stat_sum(uprobe, AP_STAT_PROCESSES_UNNOTICED) +
		missed_at(uprobe, AP_TRACEPOINT_EXIT) +
		missed_at(uprobe, AP_TRACEPOINT_PREPARE_EXEC) +
		recursion_misses(uprobe, skeleton->progs.on_exit_memory) +
		recursion_misses(uprobe, skeleton->progs.on_exec_memory);
	err = add_programs(uprobe, results);
	if (uprobe__second_programs(uprobe)) {
		results->second_engine = uprobe_engine.name;
		results->second_programs = uprobe__second_programs(uprobe)->list;
		results->n_second_programs = uprobe__second_programs(uprobe)->n;
	}
	results->impossible = stat_sum(uprobe, AP_STAT_IMPOSSIBLE);
	results->relabelled = stat_sum(uprobe, AP_STAT_RELABELLED);
	results->gaps[GAP_NOT_NESTED] = stat_sum(uprobe, AP_STAT_NOT_NESTED);
	results->gaps[GAP_MAPPINGS_LOST] = uprobe__mappings_lost(uprobe) -
					   uprobe->forgotten.mappings_lost +
					   recursion_misses(uprobe, skeleton->progs.on_map);
	results->gaps[GAP_MAPPINGS_UNSURE] = stat_sum(uprobe, AP_STAT_MAPPINGS_UNSURE);
	results->gaps[GAP_OPERANDS_UNREAD] = stat_sum(uprobe, AP_STAT_OPERANDS_UNREAD);
	results->gaps[GAP_CALLS_UNREAD] = stat_sum(uprobe, AP_STAT_CALLS_UNREAD);
	results->processes_left = uprobe->processes_left;
	results->waits = skeleton->bss->waits.count;
	results->waits_ns = skeleton->bss->waits.total_ns;
	results->own_heaps = runtimes__own_heaps(uprobe->runtimes);
	/* After all other readings. */
	results->gaps[GAP_COUNTERS_UNREAD] = uprobe->counters->unread;
	if (uprobe->live)
		results->gaps[GAP_COUNTERS_UNREAD] += live__implausible(uprobe->live);
	return err;
}
