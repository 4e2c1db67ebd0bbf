// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocprof.skel.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "cpython.h"
#include "error.h"
#include "live.h"
#include "mappings.h"
#include "probes.h"
#include "regions.h"
#include "ring_reader.h"

/* Maximum interval between reads of the ring buffer. */
#define TICK_MS 100

/* Number of snapshots to unwind before the ring buffer is read again: the record of a new file must
 * not wait for long, since programs send snapshots until its table is ready. */
#define DUMPS_AT_A_TIME 16

static int add_candidate(struct session *session, const struct mapping_event *event)
{
	struct mapping_candidate *candidate = malloc(sizeof(*candidate));

	if (!candidate)
		return -ENOMEM;
	candidate->event = *event;
	candidate->next = NULL;
	candidate->event.path = strdup(event->path);
	if (!candidate->event.path) {
		free(candidate);
		return -ENOMEM;
	}
	*session->candidates_end = candidate;
	session->candidates_end = &candidate->next;
	return 0;
}

static void handle_mapping(const struct mapping_event *event, void *context)
{
	struct session *session = context;
	int err = collector__handle_mapping(session->collector, event);

	if (!err && event->kind == MAPPING_ADDED)
		err = add_candidate(session, event);
	if (err)
		session->mappings_dropped++;
}

void session__read_mappings(struct session *session)
{
	/* The events belong to the session in the parent process. */
	if (session->is_snapshot)
		return;
	mapping_events__read(session->mapping_events, handle_mapping, session);
}

void session__refresh_mappings(void *context)
{
	session__read_mappings(context);
}

const struct ap_within *session__code_within(int fd, const char *path, void *context)
{
	const struct session *session = context;

	return session->gate ? gate__within(session->gate, fd, path) : NULL;
}

int session__set_within(__u32 module, const struct ap_within *within, void *context)
{
	const struct session *session = context;

	return bpf_map_update_elem(bpf_map__fd(session->skeleton->maps.within_ranges), &module,
				   within, BPF_ANY)
		       ? -errno
		       : 0;
}

/* Looks for allocators in mappings of followed processes. Mappings of other processes are kept for
 * one tick, since the record of a process's fork may be delayed by a reserved record before it in
 * the ring buffer. */
static void look_at_candidates(struct session *session)
{
	__u64 now = clock__now_ns();
	struct mapping_candidate *candidate, *kept = NULL, **kept_end = &kept;

	while ((candidate = session->candidates)) {
		const struct mapping_event *event = &candidate->event;

		session->candidates = candidate->next;
		/* The calls below may add candidates. */
		if (!session->candidates)
			session->candidates_end = &session->candidates;
		candidate->next = NULL;
		if (collector__is_followed(session->collector, event->pid, event->time_ns)) {
			session->late_pid = event->pid;
			probes__notice_mapping(session->probes, event);
			session->late_pid = 0;
			cpython__notice_mapping(session->cpython, event);
		} else if (now < event->time_ns + TICK_MS * 1000000ULL) {
			*kept_end = candidate;
			kept_end = &candidate->next;
			continue;
		} else {
			collector__forget_process(session->collector, event->pid);
		}
		free(candidate->event.path);
		free(candidate);
	}
	if (!kept)
		return;
	session->candidates = kept;
	session->candidates_end = kept_end;
}

/*
 * A process's fork record precedes its first mapping. So this reads the pending mappings first,
 * then the records, and then checks which mappings are of followed processes.
 */
int session__read_events(struct session *session)
{
	int err;

	if (session->options.limits.no_last_read && session->target.end_ns)
		return -EIO;
	session__read_mappings(session);
	err = ring_reader__read(session->ring);
	/* User space makes progress, so the budget of waiting hits is refilled. */
	if (collector__brings_tables(session->collector) || err > 0)
		__atomic_store_n(&session->skeleton->bss->waits.left_ns, AP_WAITS_BUDGET_NS,
				 __ATOMIC_RELAXED);
	look_at_candidates(session);
	cpython__attend(session->cpython, clock__now_ns());
	if (session->gate)
		gate__poll(session->gate);
	if (err < 0)
		return err;
	err = collector__settle(session->collector, DUMPS_AT_A_TIME);
	if (err)
		return err;
	if (session->live) {
		ring_reader__step_back(session->ring);
		err = live__attend(session->live, session->collector);
		ring_reader__resume(session->ring);
		return err;
	}
	if (!count_maps__want_drain(&session->counts))
		return 0;
	err = count_maps__begin_drain(&session->counts);
	if (err)
		return err;
	err = ring_reader__read(session->ring);
	if (err >= 0)
		err = collector__settle(session->collector, DUMPS_AT_A_TIME);
	if (err < 0)
		return err;
	ring_reader__step_back(session->ring);
	err = count_maps__end_drain(&session->counts, session->collector);
	ring_reader__resume(session->ring);
	return err;
}

/* Returns whether the recording is to end. */
static bool handle_signals(struct session *session, int signal_fd)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGCHLD)
			continue;
		session->n_signals++;
		if (!session->target.launched || session->n_signals > 1) {
			end = true;
			continue;
		}
		/* A signal from the terminal went to the whole foreground process group, so the
		 * target has it already. */
		if (info.ssi_code != SI_KERNEL)
			syscall(SYS_pidfd_send_signal, session->target.pidfd, info.ssi_signo, NULL,
				0);
	}
	return end;
}

static int watch(int epoll_fd, int fd)
{
	struct epoll_event interest = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &interest) ? -errno : 0;
}

static int until(__u64 at_ns, __u64 now_ns, int most)
{
	__u64 ms = at_ns > now_ns ? (at_ns - now_ns) / 1000000 + 1 : 0;

	return ms < (__u64)most ? (int)ms : most;
}

static int timeout_ms(struct session *session, __u64 now_ns, __u64 end_ns)
{
	bool has_more =
		collector__has_dumps(session->collector) || ring_reader__has_kept(session->ring);
	int timeout = has_more ? 0 : TICK_MS;

	if (timeout && session->live)
		timeout = live__timeout_ms(session->live, timeout);
	if (end_ns)
		timeout = until(end_ns, now_ns, timeout);
	if (session->opens_at_ns)
		timeout = until(session->opens_at_ns, now_ns, timeout);
	return timeout;
}

int session__run(struct session *session, __u64 duration_ns, int signal_fd,
		 const struct session_attendant *attendant, struct error *error)
{
	_cleanup_(close_fd) int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	__u64 end_ns = duration_ns ? session->target.start_ns + duration_ns : 0;
	struct epoll_event ready[4];
	int err = 0;

	if (epoll_fd < 0)
		return -errno;
	if ((err = watch(epoll_fd, ring_reader__fd(session->ring))) ||
	    (err = watch(epoll_fd, mapping_events__fd(session->mapping_events))) ||
	    (err = watch(epoll_fd, session->target.pidfd)) || (err = watch(epoll_fd, signal_fd)) ||
	    (attendant && attendant->fd >= 0 && (err = watch(epoll_fd, attendant->fd))))
		return error__set(error, err, "cannot wait for events: %s", strerror(-err));
	if (session->options.window.delay_ns)
		session->opens_at_ns = session->target.start_ns + session->options.window.delay_ns;

	while (!target__has_ended(&session->target)) {
		__u64 now = clock__now_ns();

		/* First, so that a window that is due opens, however late it is. */
		if (session->opens_at_ns && now >= session->opens_at_ns)
			session__open_gate(session, true);
		if (end_ns && now >= end_ns)
			break;
		epoll_wait(epoll_fd, ready, 4, timeout_ms(session, now, end_ns));
		err = session__read_events(session);
		if (!err && attendant)
			err = attendant->attend(session, attendant->context);
		if (err)
			return error__set(error, err, "the recording cannot continue: %s",
					  strerror(-err));
		if (handle_signals(session, signal_fd))
			break;
	}
	return 0;
}

/* Number of entries in the programs' map of processes, without the target. */
__u64 session__count_followed(const struct session *session)
{
	int fd = bpf_map__fd(session->skeleton->maps.processes);
	__u32 key, next;
	bool has_key = false;
	__u64 n = 0;

	while (!bpf_map_get_next_key(fd, has_key ? &key : NULL, &next)) {
		key = next;
		has_key = true;
		n++;
	}
	return n && !session->target.waited ? n - 1 : n;
}

/*
 * No program counts a call from here on. The kernel removes probes one by one, which takes
 * milliseconds, while the others are still hit. Without this, calls of the probes removed last
 * would count, and those of the first would not.
 */
static int end_window(struct session *session)
{
	struct ap_gate *gate = &session->skeleton->bss->gate;
	int err = 0;

	if (session->live) {
		/* So that live knows of all processes that have ended. */
		err = session__read_events(session);
		if (!err)
			err = live__stop(session->live, session->target.end_ns);
	}
	__atomic_store_n(&gate->open, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&gate->running, 0, __ATOMIC_RELAXED);
	return err;
}

int session__finish(struct session *session, struct error *error)
{
	int err;

	if (session->is_snapshot) {
		err = session__collect_snapshot(session);
		goto out;
	}
	if (!session->target.end_ns)
		session->target.end_ns = clock__now_ns();
	err = end_window(session);
	session__look_for_unprobed(session);
	session->processes_left = session__count_followed(session);
	mapping_events__finish(session->mapping_events);
	probes__detach(session->probes);
	mappings__detach(session->skeleton);
	gate__detach(session->gate);
	regions__detach(session->regions);
	collector__finish_tables(session->collector);
	if (!err)
		err = session__read_events(session);
	for (size_t i = 0; i < session->unprobed.n; i++)
		probes__blame(session->probes, &session->unprobed.list[i]);
	if (!err && session->regions)
		regions__collect(session->regions);
	if (!err)
		err = collector__settle(session->collector, SIZE_MAX);
	if (!err && session->live)
		err = live__collect(session->live, session->collector);
	else if (!err && session->options.stacks)
		err = count_maps__drain_all(&session->counts, session->collector);
out:
	session->unread_at_end = session->counters->unread;
	if (err)
		return error__set(error, err, "cannot collect the counts: %s", strerror(-err));
	return 0;
}
