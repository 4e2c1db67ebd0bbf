// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads what the programs have counted and lost, at the end. */
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
#include "probed_file.h"
#include "probes.h"
#include "profile.h"
#include "regions.h"
#include "ring_reader.h"
#include "runtimes.h"
#include "definitions.h"
#include "stepping.h"
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

/* Returns how often the kernel skipped programs at system calls and USDT probes. */
static __u64 definition_recursion_misses(const struct uprobe *uprobe)
{
	const struct definitions *definitions = uprobe->options.definitions;
	__u64 misses = 0;

	if (definitions__has_mappings(definitions))
		misses += mappings__recursion_misses(uprobe->skeleton, uprobe->counters);
	if (definitions__any_usdt(definitions))
		misses += recursion_misses(uprobe, uprobe__usdt_program(uprobe));
	return misses;
}

/* Returns how often the kernel skipped programs at probes. */
__u64 uprobe__recursion_misses(const struct uprobe *uprobe)
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;

	if (uprobe->is_snapshot)
		return uprobe->at_cut.recursion;
	if (!uprobe->live)
		return recursion_misses(uprobe, uprobe__entry_program(uprobe)) +
		       definition_recursion_misses(uprobe);
	return definition_recursion_misses(uprobe) +
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

static int add_functions(const struct uprobe *uprobe)
{
	const struct probed_allocator *list;
	size_t n;
	int err = 0;

	list = probes__list(uprobe->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; list[i].has_sites && j < allocator->n_sites && !err; j++) {
			enum ap_function number = allocator->sites[j].function;
			struct function_totals *function =
				&uprobe->profile->totals.functions[number];

			function->probed = true;
			sum_site(uprobe, list[i].first_site + j, &function->counts);
			if (allocator->names[number].n >= function->n_aliases)
				err = profile__set_aliases(uprobe->profile, number,
							   allocator->names[number].list,
							   allocator->names[number].n);
		}
	}
	return err;
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

static void add_live(const struct uprobe *uprobe)
{
	const struct ap_live *shared = &uprobe->skeleton->bss->live;
	struct live_totals *live = &uprobe->profile->totals.live;

	uprobe->profile->totals.has_live = true;
	for (int i = 0; i < AP_STATS; i++)
		live->stats[i] = stat_sum(uprobe, i);
	for (int i = 0; i < AP_UNTRACKED_REASONS; i++)
		live->untracked += live->stats[AP_STAT_UNTRACKED + i];
	live->unfinished = live->stats[AP_STAT_UNFINISHED] + live__unfinished(uprobe->live);
	live->discarded = live__discarded(uprobe->live, &live->discarded_bytes);
	live->blocks =
		live->stats[AP_STAT_ALLOCATIONS] - live->stats[AP_STAT_FREES] - live->discarded;
	live->size_bytes = live->stats[AP_STAT_ALLOCATED_BYTES] - live->stats[AP_STAT_FREED_BYTES] -
			   live->discarded_bytes;
	live->peak_bytes = shared->max_bytes;
	live__epochs(uprobe->live, live);
	live__mappings(uprobe->live, &live->mappings);
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

static struct engine_calls calls_of(const struct uprobe *uprobe)
{
	struct engine_calls calls = { .may_be_short = uprobe->is_snapshot };

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		calls.lost[reason] = uprobe__count_lost(uprobe, reason);
	if (!uprobe->options.stacks)
		return calls;
	calls.not_sampled = stat_sum(uprobe, AP_STAT_NOT_SAMPLED);
	calls.attributed = collector__attributed(uprobe->collector);
	calls.events = uprobe->is_snapshot ? uprobe->events_at_cut : uprobe__count_events(uprobe);
	return calls;
}

/* Returns whether any call was counted. Where functions begin or end the window there is no
 * fallback engine, whose calls would be included. */
static bool is_anything_counted(const struct uprobe *uprobe, const struct engine_calls *calls)
{
	const struct function_totals *functions = uprobe->profile->totals.functions;

	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (functions[i].counts.calls || functions[i].counts.internal)
			return true;
	return calls->not_sampled + calls->attributed > 0;
}

static int add_window(const struct uprobe *uprobe, const struct engine_calls *calls)
{
	int err;

	if (!uprobe->gate)
		return 0;
	err = profile__add_ledger(uprobe->profile, "undecided",
				  stat_sum(uprobe, AP_STAT_UNDECIDED) +
					  collector__undecided(uprobe->collector));
	return err ? err
		   : profile__note_window(
			     uprobe->profile,
			     gate__never_opened(uprobe->gate, is_anything_counted(uprobe, calls)));
}

static int add_regions(const struct uprobe *uprobe)
{
	const struct region *list;
	size_t n = 0;
	int err = 0;

	if (uprobe->regions)
		list = regions__list(uprobe->regions, &n);
	for (size_t i = 0; i < n && !err; i++)
		err = profile__add_region(uprobe->profile, &list[i]);
	return err;
}

/* Adds the programs that took memory without a hit. Sets *@n_others to the number of processes of
 * such programs that are not in the list. */
static int add_programs(const struct uprobe *uprobe, __u64 *n_others)
{
	__u64 listed = 0, unprobed = stat_sum(uprobe, AP_STAT_UNPROBED);
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
	*n_others = unprobed > listed ? unprobed - listed : 0;
	return err;
}

static int add_uprobe_programs(const struct uprobe *uprobe)
{
	const struct unprobed *programs = uprobe__fallback_programs(uprobe);
	int err = 0;

	for (size_t i = 0; programs && i < programs->n && !err; i++)
		err = profile__add_uprobe_program(
			uprobe->profile,
			&(struct uprobe_program){ .name = programs->list[i].name,
						  .pid = programs->list[i].pid,
						  .processes = programs->list[i].processes });
	return err;
}

/* Adds the numbers of calls that the log of events has, and of those that it lacks. */
static int add_log(const struct uprobe *uprobe)
{
	struct event_log_results log = uprobe->log_at_cut;

	if (uprobe->events)
		event_collector__results(uprobe->events, &log);
	return event_log_results__add(&log, uprobe->profile);
}

/* Adds figures that the user reads beside the counts of calls. */
static int add_figures(const struct uprobe *uprobe)
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;
	const char *own_heaps = runtimes__own_heaps(uprobe->runtimes);
	struct profile *profile = uprobe->profile;
	int err = 0;

	profile->totals.processes += skeleton->bss->processes_seen - uprobe->forgotten.processes;
	profile->totals.processes_left += uprobe->processes_left;
	profile->totals.relabelled += stat_sum(uprobe, AP_STAT_RELABELLED);
	if (stat_sum(uprobe, AP_STAT_IMPOSSIBLE))
		err = profile__add_meta_number(profile, "impossible_calls",
					       stat_sum(uprobe, AP_STAT_IMPOSSIBLE));
	if (!err)
		err = profile__add_meta_number(profile, "waits", skeleton->bss->waits.count);
	if (!err)
		err = profile__add_meta_number(profile, "waits_ns", skeleton->bss->waits.total_ns);
	if (!err && own_heaps && !profile__meta(profile, "own_heaps"))
		err = profile__set_meta(profile, "own_heaps", own_heaps);
	return err;
}

/* Fewer single-stepped calls take too little time to be worth a measurement. */
#define LEAST_STEPPED 5000

static bool is_stepped(const struct site *site)
{
	/* A system call's site has no reason. */
	return !site->emulated && site->reason[0];
}

/* Adds calls of functions with single-stepped probes, as counted by stack. */
static void add_stepped_stacks(struct profile *profile, struct stepped_totals *stepped)
{
	__u64 probed = stepped->functions, freeing = probed & AP_FREEING;

	stepped->functions = profile->totals.live.stats[AP_STAT_FREES] ? freeing : 0;
	if (freeing)
		stepped->calls += profile->totals.live.stats[AP_STAT_FREES];
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];

		if (!(probed >> count->function & 1))
			continue;
		stepped->functions |= 1ULL << count->function;
		stepped->calls += count->calls;
	}
}

static void add_stepped(const struct uprobe *uprobe)
{
	struct stepped_totals *stepped = &uprobe->profile->totals.stepped;
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(uprobe->probes, &n);
	for (size_t i = 0; i < n; i++) {
		const struct allocator *allocator = list[i].allocator;

		for (size_t j = 0; list[i].has_sites && j < allocator->n_sites; j++) {
			struct ap_site_counts counts = { 0 };

			if (!is_stepped(&allocator->sites[j]))
				continue;
			sum_site(uprobe, list[i].first_site + j, &counts);
			if (uprobe->options.stacks || counts.calls + counts.internal)
				stepped->functions |= 1ULL << allocator->sites[j].function;
			stepped->calls += counts.calls + counts.internal;
		}
	}
	if (uprobe->options.stacks)
		add_stepped_stacks(uprobe->profile, stepped);
	if (stepped->calls >= LEAST_STEPPED && !uprobe->is_snapshot)
		stepping__measure(&stepped->hit_seconds);
}

/* Returns how many changes of mappings the programs could not send, or sent and nobody has read. */
static __u64 changes_lost(const struct uprobe *uprobe)
{
	__u64 sent = uprobe__raw_stat(uprobe, AP_STAT_MAPPING_CHANGES);
	__u64 read = uprobe->profile->totals.live.mappings.changes;

	return stat_sum(uprobe, AP_STAT_MAPPING_CHANGES_LOST) + (sent > read ? sent - read : 0);
}

static void count_gaps(const struct uprobe *uprobe, __u64 gaps[GAP_NUMBERS])
{
	const struct allocprof_bpf *skeleton = uprobe->skeleton;

	if (uprobe->gate)
		gaps[GAP_WINDOW_UNNOTICED] =
			uprobe__gate_recursion_misses(uprobe) - uprobe->forgotten.gate_recursion;
	if (uprobe->regions)
		gaps[GAP_REGION_UNNOTICED] = recursion_misses(uprobe, skeleton->progs.region_event);
	for (int i = 0; uprobe->regions && i < AP_REGION_GAPS; i++)
		gaps[GAP_REGION_DEPTH + i] = stat_sum(uprobe, AP_STAT_REGION_GAP + i);
	gaps[GAP_PROCESSES_UNFOLLOWED] = stat_sum(uprobe, AP_STAT_PROCESSES_LOST) +
					 missed_at(uprobe, AP_TRACEPOINT_FORK) +
					 missed_at(uprobe, AP_TRACEPOINT_EXEC);
	gaps[GAP_PROCESSES_REFUSED] = stat_sum(uprobe, AP_STAT_PROCESSES_REFUSED);
	gaps[GAP_PROCESSES_UNNOTICED] = stat_sum(uprobe, AP_STAT_PROCESSES_UNNOTICED) +
					missed_at(uprobe, AP_TRACEPOINT_EXIT) +
					missed_at(uprobe, AP_TRACEPOINT_PREPARE_EXEC) +
					recursion_misses(uprobe, skeleton->progs.on_exit_memory) +
					recursion_misses(uprobe, skeleton->progs.on_exec_memory);
	gaps[GAP_NOT_NESTED] = stat_sum(uprobe, AP_STAT_NOT_NESTED);
	gaps[GAP_MAPPINGS_LOST] = uprobe__mappings_lost(uprobe) - uprobe->forgotten.mappings_lost +
				  recursion_misses(uprobe, skeleton->progs.on_map);
	gaps[GAP_MAPPINGS_UNSURE] = stat_sum(uprobe, AP_STAT_MAPPINGS_UNSURE);
	gaps[GAP_MAPPING_CHANGES] = changes_lost(uprobe);
	gaps[GAP_OPERANDS_UNREAD] = stat_sum(uprobe, AP_STAT_OPERANDS_UNREAD);
	gaps[GAP_CALLS_UNREAD] = stat_sum(uprobe, AP_STAT_CALLS_UNREAD);
	/* This gap is set last, when everything else has been read. */
	gaps[GAP_COUNTERS_UNREAD] = uprobe->counters->unread;
	gaps[GAP_COUNTERS_UNREAD] += skeleton->bss->faults_unchecked;
	if (uprobe->live)
		gaps[GAP_COUNTERS_UNREAD] += live__implausible(uprobe->live);
}

int uprobe__results(struct engine *engine)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	struct engine_calls calls = calls_of(uprobe);
	__u64 gaps[GAP_NUMBERS] = { 0 };
	int err = add_functions(uprobe);

	if (uprobe->live)
		add_live(uprobe);
	if (!err)
		err = add_log(uprobe);
	if (!err)
		err = add_window(uprobe, &calls);
	if (!err)
		err = add_regions(uprobe);
	if (!err)
		err = add_programs(uprobe, &gaps[GAP_OTHERS_UNPROBED]);
	if (!err)
		err = add_uprobe_programs(uprobe);
	if (!err)
		err = add_figures(uprobe);
	add_stepped(uprobe);
	count_gaps(uprobe, gaps);
	/* The counter of calls may be one that could not be read. */
	calls.may_be_short |= gaps[GAP_COUNTERS_UNREAD] > 0;
	profile__add_engine_calls(uprobe->profile, &calls, uprobe->options.stacks);
	return err ? err : profile__add_numbers(uprobe->profile, gaps, GAP_NUMBERS);
}
