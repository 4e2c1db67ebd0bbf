// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens and closes the gate, and makes cuts through the counts of a running measurement. */
#include "uprobe_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "allocprof.skel.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "event_collector.h"
#include "live.h"
#include "ring_reader.h"
#include "target.h"

/* How often, and after how long, the ring buffer is read again: a program may still hold a
 * reserved record in front of those that are awaited. */
#define RING_TRIES   200
#define RING_WAIT_US 1000

int uprobe__open_gate(struct engine *engine, bool open)
{
	struct uprobe *uprobe = uprobe__of(engine);
	struct ap_gate *gate = &uprobe->skeleton->bss->gate;

	if (open)
		gate->opened = 1;
	__atomic_store_n(&gate->open, open, __ATOMIC_RELAXED);
	return open ? 0 : count_maps__wait_for_programs(&uprobe->counts);
}

void uprobe__progress(const struct engine *engine, struct session_progress *progress)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	__s64 live_size_bytes = uprobe->skeleton->bss->live.size_bytes;

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		progress->lost += uprobe__count_lost(uprobe, reason);
	/* Without stacks the programs count by site only. */
	progress->calls += uprobe->options.stacks ? uprobe__count_events(uprobe)
						  : uprobe__count_site_calls(uprobe);
	progress->live_size_bytes += live_size_bytes > 0 ? live_size_bytes : 0;
}

static void read_counters(struct uprobe *uprobe)
{
	struct uprobe_counters *counters = &uprobe->at_cut;
	__u64 running = uprobe__count_followed(uprobe) + target__n_left(uprobe->target);

	for (int i = 0; i < AP_STATS; i++)
		counters->stats[i] = uprobe__raw_stat(uprobe, i);
	counters->recursion = uprobe__recursion_misses(uprobe);
	counters->gate_recursion = uprobe__gate_recursion_misses(uprobe);
	counters->mappings_lost = uprobe__mappings_lost(uprobe);
	counters->processes = uprobe->skeleton->bss->processes_seen;
	counters->processes -= running < counters->processes ? running : counters->processes;
	uprobe->cut_ns = clock__now_ns();
}

/* Returns the number of calls between the last reset and the cut that are or will be in the
 * profile, were not sampled, or are known to be lost. */
static __u64 known_events(const struct uprobe *uprobe)
{
	const struct uprobe_counters *now = &uprobe->at_cut, *before = &uprobe->forgotten;
	__u64 known = now->recursion - before->recursion;

	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		known += now->stats[AP_STAT_LOST + reason] - before->stats[AP_STAT_LOST + reason];
	known += now->stats[AP_STAT_NOT_SAMPLED] - before->stats[AP_STAT_NOT_SAMPLED];
	return known + collector__accounted(uprobe->collector);
}

/* Reads the current counters and the records that belong to them. */
static int cut_counts(struct uprobe *uprobe)
{
	int err = uprobe__read_events(uprobe);

	if (err)
		return err;
	uprobe->events_at_cut = uprobe__count_events(uprobe);
	err = count_maps__begin_drain(&uprobe->counts);
	if (!err)
		err = ring_reader__read(uprobe->ring);
	if (err >= 0)
		err = count_maps__end_drain(&uprobe->counts, uprobe->collector);
	read_counters(uprobe);
	for (int i = 0; !err && i < RING_TRIES && known_events(uprobe) < uprobe->events_at_cut;
	     i++) {
		usleep(RING_WAIT_US);
		err = ring_reader__read(uprobe->ring);
		err = err < 0 ? err : 0;
		read_counters(uprobe);
	}
	/* The snapshot's process cannot read the mapping events that unwinding needs. */
	uprobe__read_mappings(uprobe);
	return err;
}

/* Live memory is in too many maps to be read at once while programs run. This reads it as if none
 * ran, and uprobe__collect_snapshot() checks that none did. */
static int cut_live(struct uprobe *uprobe)
{
	int err = uprobe__read_events(uprobe);

	if (err)
		return err;
	uprobe->live_activity = live__activity(uprobe->live);
	uprobe->events_at_cut = uprobe__count_events(uprobe);
	err = count_maps__wait_for_programs(&uprobe->counts);
	if (!err)
		err = ring_reader__read(uprobe->ring);
	uprobe__read_mappings(uprobe);
	if (err >= 0)
		err = live__cut(uprobe->live);
	read_counters(uprobe);
	return err;
}

int uprobe__collect_snapshot(struct uprobe *uprobe)
{
	int err = collector__settle(uprobe->collector, SIZE_MAX);

	if (err || !uprobe->live)
		return err;
	err = live__collect_snapshot(uprobe->live, uprobe->collector, uprobe->cut_ns);
	if (!err)
		err = count_maps__wait_for_programs(&uprobe->counts);
	if (err)
		return err;
	return live__activity(uprobe->live) == uprobe->live_activity ? 0 : -EAGAIN;
}

int uprobe__cut(struct engine *engine, __u64 *cut_ns)
{
	struct uprobe *uprobe = uprobe__of(engine);
	int err = uprobe->live ? cut_live(uprobe) : cut_counts(uprobe);

	if (!err)
		*cut_ns = uprobe->cut_ns;
	return err;
}

void uprobe__become_snapshot(struct engine *engine)
{
	struct uprobe *uprobe = uprobe__of(engine);

	uprobe->is_snapshot = true;
	/* Only the parent writes the log. */
	if (uprobe->events)
		event_collector__results(uprobe->events, &uprobe->log_at_cut);
	uprobe->events = NULL;
}

void uprobe__forget(struct engine *engine)
{
	struct uprobe *uprobe = uprobe__of(engine);
	__u64 known = known_events(uprobe);

	uprobe->last_forgotten_events =
		known > uprobe->events_at_cut ? known : uprobe->events_at_cut;
	uprobe->forgotten_events += uprobe->last_forgotten_events;
	uprobe->forgotten = uprobe->at_cut;
	unprobed__release(&uprobe->unprobed);
	collector__forget(uprobe->collector);
}

/* Lets the forgotten calls count as events again, without any other count, so that they are
 * unaccounted. */
void uprobe__lose_forgotten(struct engine *engine)
{
	struct uprobe *uprobe = uprobe__of(engine);

	uprobe->forgotten_events -= uprobe->last_forgotten_events;
	uprobe->last_forgotten_events = 0;
}

/* Zeroes all entries of a per-CPU array. */
static int clear_counters(const struct bpf_map *map, int n_cpus)
{
	_cleanup_(free_ptr) void *none = calloc(n_cpus, (bpf_map__value_size(map) + 7) & ~7U);

	if (!none)
		return -ENOMEM;
	for (__u32 at = 0; at < bpf_map__max_entries(map); at++)
		if (bpf_map_update_elem(bpf_map__fd(map), &at, none, BPF_ANY))
			return -errno;
	return 0;
}

/* With the gate closed no program counts; calls in this interval are not counted. */
static int reset_statistics(struct uprobe *uprobe)
{
	const struct bpf_map *counters[] = {
		uprobe->skeleton->maps.site_counts,
		uprobe->skeleton->maps.region_begins,
		uprobe->skeleton->maps.region_counts,
	};
	struct ap_gate *gate = &uprobe->skeleton->bss->gate;
	size_t n = uprobe->regions ? 3 : 1;
	__u32 open = gate->open;
	int err;

	__atomic_store_n(&gate->open, 0, __ATOMIC_RELAXED);
	err = count_maps__wait_for_programs(&uprobe->counts);
	for (size_t i = 0; i < n && !err; i++)
		err = clear_counters(counters[i], uprobe->counters->n_cpus);
	if (!err) {
		read_counters(uprobe);
		uprobe__forget(&uprobe->engine);
	}
	__atomic_store_n(&gate->open, open, __ATOMIC_RELAXED);
	return err;
}

int uprobe__reset(struct engine *engine, __u64 *cut_ns)
{
	struct uprobe *uprobe = uprobe__of(engine);
	int err = uprobe->options.stacks ? cut_counts(uprobe) : reset_statistics(uprobe);

	if (err)
		return err;
	if (uprobe->options.stacks)
		uprobe__forget(engine);
	*cut_ns = uprobe->cut_ns;
	return 0;
}
