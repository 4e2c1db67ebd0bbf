// SPDX-License-Identifier: GPL-3.0-or-later
/* Operations on a running session. */
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "allocprof.skel.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "error.h"
#include "live.h"
#include "profile.h"
#include "ring_reader.h"

/* A program may still hold a reserved record in the ring buffer before those that are awaited. */
#define RING_TRIES   200
#define RING_WAIT_US 1000

int session__open_gate(struct session *session, bool open)
{
	struct ap_gate *gate = &session->skeleton->bss->gate;

	if (gate->open && !open)
		session->marks.stops++;
	if (gate->open != open)
		session->gate_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->opens_at_ns = 0;
	if (open)
		gate->opened = 1;
	__atomic_store_n(&gate->open, open, __ATOMIC_RELAXED);
	return open ? 0 : count_maps__wait_for_programs(&session->counts);
}

bool session__is_gate_open(const struct session *session)
{
	return session->skeleton->bss->gate.open;
}

void session__progress(const struct session *session, struct session_progress *progress)
{
	__u64 since_ns = session->since_ns ? session->since_ns : session->target.start_ns;
	__s64 live_size_bytes = session->skeleton->bss->live.size_bytes;
	__u64 lost = 0;

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		lost += session__count_lost(session, reason);
	*progress = (struct session_progress){
		.elapsed_ns = clock__now_ns() - since_ns,
		/* Without stacks the programs count by site only. */
		.calls = session->options.stacks ? session__count_events(session)
						 : session__count_site_calls(session),
		.lost = lost,
		.is_counting = session__is_gate_open(session),
		.has_live = session->live,
		.live_size_bytes = live_size_bytes > 0 ? live_size_bytes : 0,
	};
}

bool session__visit_processes(const struct session *session,
			      bool (*visit)(pid_t pid, void *context), void *context)
{
	const struct profile *profile = collector__profile(session->collector);

	if (!session->target.end_ns && visit(session->target.pid, context))
		return true;
	for (size_t i = 0; i < profile->n_processes; i++)
		if (!profile->processes[i].end_ns && visit(profile->processes[i].pid, context))
			return true;
	return false;
}

static void read_counters(struct session *session)
{
	struct session_counters *counters = &session->at_cut;
	__u64 running = session__count_followed(session) + !session->target.waited;

	for (int i = 0; i < AP_STATS; i++)
		counters->stats[i] = session__raw_stat(session, i);
	counters->recursion = session__recursion_misses(session);
	counters->gate_recursion = session__gate_recursion_misses(session);
	counters->mappings_lost = session__mappings_lost(session);
	counters->processes = session->skeleton->bss->processes_seen;
	counters->processes -= running < counters->processes ? running : counters->processes;
	session->cut_ns = clock__now_ns();
}

/* Calls until the cut and since the last reset that are in the profile, will be, were not sampled,
 * or are known to be lost. */
static __u64 known_events(const struct session *session)
{
	const struct session_counters *now = &session->at_cut, *before = &session->forgotten;
	__u64 known = now->recursion - before->recursion;

	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		known += now->stats[AP_STAT_LOST + reason] - before->stats[AP_STAT_LOST + reason];
	known += now->stats[AP_STAT_NOT_SAMPLED] - before->stats[AP_STAT_NOT_SAMPLED];
	return known + collector__accounted(session->collector);
}

/* Reads the current counters and the records that belong to them. */
static int cut_counts(struct session *session)
{
	int err = session__read_events(session);

	if (err)
		return err;
	session->events_at_cut = session__count_events(session);
	err = count_maps__begin_drain(&session->counts);
	if (!err)
		err = ring_reader__read(session->ring);
	if (err >= 0)
		err = count_maps__end_drain(&session->counts, session->collector);
	read_counters(session);
	for (int i = 0; !err && i < RING_TRIES && known_events(session) < session->events_at_cut;
	     i++) {
		usleep(RING_WAIT_US);
		err = ring_reader__read(session->ring);
		err = err < 0 ? err : 0;
		read_counters(session);
	}
	/* The snapshot's process cannot read the mapping events that unwinding needs. */
	session__read_mappings(session);
	return err;
}

/* Live memory is in too many maps to be read at once while programs run. This assumes that none
 * does, and session__collect_snapshot() checks it. */
static int cut_live(struct session *session)
{
	int err = session__read_events(session);

	if (err)
		return err;
	session->live_activity = live__activity(session->live);
	session->events_at_cut = session__count_events(session);
	err = count_maps__wait_for_programs(&session->counts);
	if (!err)
		err = ring_reader__read(session->ring);
	session__read_mappings(session);
	if (err >= 0)
		err = live__cut(session->live);
	read_counters(session);
	return err;
}

int session__collect_snapshot(struct session *session)
{
	int err = collector__settle(session->collector, SIZE_MAX);

	if (err || !session->live)
		return err;
	err = live__collect_snapshot(session->live, session->collector, session->cut_ns);
	if (!err)
		err = count_maps__wait_for_programs(&session->counts);
	if (err)
		return err;
	return live__activity(session->live) == session->live_activity ? 0 : -EAGAIN;
}

int session__cut(struct session *session, struct error *error)
{
	int err;

	if (!session->options.stacks)
		return error__set(error, -EOPNOTSUPP,
				  "stat keeps no stacks that could be written; allocprof record "
				  "does");
	err = session->live ? cut_live(session) : cut_counts(session);
	return err ? error__set(error, err, "cannot collect the counts: %s", strerror(-err)) : 0;
}

/* A BPF link stays attached, and a socket open, while any process has its descriptor. */
static void close_links(void)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	char link[64];

	while (directory && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);
		ssize_t len = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);

		if (len < 0)
			continue;
		link[len] = '\0';
		if ((!strncmp(link, "anon_inode:", 11) && strcmp(link, "anon_inode:bpf-map") &&
		     strcmp(link, "anon_inode:bpf-prog")) ||
		    !strncmp(link, "socket:", 7))
			close(fd);
	}
	if (directory)
		closedir(directory);
}

void session__become_snapshot(struct session *session)
{
	close_links();
	session->is_snapshot = true;
	session->marks.is_dump = true;
}

int session__check_forget(const struct session *session, struct error *error)
{
	if (!session->live)
		return 0;
	return error__set(error, -EOPNOTSUPP,
			  "a recording with --live cannot be reset: blocks are followed from its "
			  "beginning to its end");
}

void session__forget(struct session *session)
{
	__u64 known = known_events(session);

	session->forgotten_events +=
		known > session->events_at_cut ? known : session->events_at_cut;
	session->forgotten = session->at_cut;
	unprobed__release(&session->unprobed);
	collector__forget(session->collector);
	session->since_ns = session->cut_ns;
	session->start_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->marks.resets++;
	session->skeleton->bss->gate.opened = session->skeleton->bss->gate.open;
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
static int reset_statistics(struct session *session)
{
	const struct bpf_map *counters[] = {
		session->skeleton->maps.site_counts,
		session->skeleton->maps.region_begins,
		session->skeleton->maps.region_counts,
	};
	struct ap_gate *gate = &session->skeleton->bss->gate;
	size_t n = session->regions ? 3 : 1;
	__u32 open = gate->open;
	int err;

	__atomic_store_n(&gate->open, 0, __ATOMIC_RELAXED);
	err = count_maps__wait_for_programs(&session->counts);
	for (size_t i = 0; i < n && !err; i++)
		err = clear_counters(counters[i], session->counters->n_cpus);
	if (!err) {
		read_counters(session);
		session__forget(session);
	}
	__atomic_store_n(&gate->open, open, __ATOMIC_RELAXED);
	return err;
}

int session__reset(struct session *session, struct error *error)
{
	int err;

	err = session__check_forget(session, error);
	if (err)
		return err;
	if (session->options.stacks) {
		err = session__cut(session, error);
		if (!err)
			session__forget(session);
		return err;
	}
	err = reset_statistics(session);
	return err ? error__set(error, err, "cannot begin anew: %s", strerror(-err)) : 0;
}
