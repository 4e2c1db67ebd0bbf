// SPDX-License-Identifier: GPL-3.0-or-later
/* Looks at the memory of a session's processes: which pages are resident (--resident), and which
 * blocks can be reached (--reachable). It looks at the command when it exits, and at processes that
 * run on when the recording ends, or a copy is made. */
#include "session_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "hold.h"
#include "proc.h"
#include "profile.h"
#include "reach.h"
#include "resident_memory.h"

/* How long is waited at most until all threads stand still. */
#define HOLD_NS (2 * NS_PER_S)

int session__open_memory(struct session *session, struct error *error)
{
	struct session_options *options = &session->options;

	if (options->resident)
		options->resident_memory = resident_memory__new();
	if (options->reachable)
		options->reach = reach__new();
	return (options->resident && !options->resident_memory) ||
			       (options->reachable && !options->reach)
		       ? error__set(error, -ENOMEM, "out of memory")
		       : 0;
}

/* Notes why something of the process's memory is not known. Fails with -ENOMEM. */
static int note_gap(struct session *session, enum gap kind, pid_t pid, const char *why)
{
	const struct profile_gap gap = {
		.kind = kind,
		.number = 1,
		.pid = pid,
		.object = "",
		.detail = why,
	};

	return profile__add_gap(session->profile, &gap);
}

/* Notes why nothing of the process's memory is known. */
static int note_unread(struct session *session, pid_t pid, const char *why)
{
	int err = 0;

	if (session->options.resident)
		err = note_gap(session, GAP_RESIDENT_UNREAD, pid, why);
	if (!err && session->options.reachable)
		err = note_gap(session, GAP_REACH_UNREAD, pid, why);
	return err;
}

int session__begin_memory(struct session *session)
{
	pid_t pid = session->target.pid;
	int err = 0;

	if (!session__reads_memory(session))
		return 0;
	if (session->target.launched)
		err = exit_stop__begin(&session->exit_stop, pid);
	else if (session->options.resident)
		err = resident_memory__read_before(session->options.resident_memory, pid);
	return err && err != -ENOMEM ? note_unread(session, pid, strerror(-err)) : err;
}

static int read_pages(struct session *session, pid_t pid)
{
	int err;

	if (!session->options.resident)
		return 0;
	err = resident_memory__read(session->options.resident_memory, pid);
	if (err == -ENOENT || err == -ESRCH)
		return 0; /* it has ended */
	return err && err != -ENOMEM ? note_gap(session, GAP_RESIDENT_UNREAD, pid, strerror(-err))
				     : err;
}

/* Lists the process's live blocks. Returns -ESRCH if no engine measures it. */
static int read_blocks(struct session *session, pid_t pid, struct reach_process *process)
{
	int err = -ESRCH;

	for (size_t i = 0; i < session->n_engines && err == -ESRCH; i++)
		err = session__operations(session, i)
			      ->read_blocks(session->engines[i], pid, process);
	return err;
}

/* Threads of a process, all of them stopped by this process. */
struct stopped_threads {
	pid_t *tids;
	size_t n, room;
};

static int add_thread(void *context, pid_t tid)
{
	struct stopped_threads *stopped = context;

	if (array__reserve(&stopped->tids, &stopped->room, stopped->n + 1, sizeof(*stopped->tids)))
		return -ENOMEM;
	stopped->tids[stopped->n++] = tid;
	return 0;
}

static bool is_stopped(const struct stopped_threads *all, pid_t tid)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->tids[i] == tid)
			return true;
	return false;
}

/* Lists the threads of the process that are held. Fails with -EBUSY if others may run. */
static int find_threads(const struct session *session, pid_t pid, struct stopped_threads *out)
{
	_cleanup_(close_directory) DIR *tasks = NULL;
	struct stopped_threads held = { 0 };
	const struct dirent *entry;
	char path[64];
	int err = hold__each_stopped(session->hold, add_thread, &held);

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!err && !tasks)
		err = -ESRCH;
	while (!err && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);
		struct proc_stat stat;

		if (tid <= 0)
			continue;
		if (is_stopped(&held, tid))
			err = add_thread(out, tid);
		else if (!proc_stat__read_thread(pid, tid, &stat) && !strchr("ZXx", stat.state))
			err = -EBUSY;
	}
	free(held.tids);
	return err;
}

/* Searches the memory of a process whose threads are all stopped. */
static int search_process(struct session *session, pid_t pid, const struct stopped_threads *threads)
{
	struct reach *reach = session->options.reach;
	struct reach_process process = { .pid = pid };
	int err = read_blocks(session, pid, &process);

	if (!err)
		return reach__search(reach, &process, threads->tids, threads->n);
	reach_process__release(&process);
	return err == -ESRCH ? 0 : err == -ENOMEM ? err : reach__refuse(reach, pid, strerror(-err));
}

static int search_held(struct session *session, pid_t pid)
{
	struct stopped_threads threads = { 0 };
	int err = find_threads(session, pid, &threads);

	if (!err)
		err = search_process(session, pid, &threads);
	else if (err == -EBUSY)
		err = reach__refuse(session->options.reach, pid,
				    "one of its threads does not stand still");
	else if (err == -ESRCH)
		err = 0; /* it has ended */
	free(threads.tids);
	return err;
}

/* Adds to the profile what is not known of processes that were searched. */
static int note_searches(struct session *session)
{
	const struct reach *reach = session->options.reach;
	int err = 0;

	for (size_t i = 0; reach && i < reach->n && !err; i++) {
		const struct reach_process *process = &reach->processes[i];
		char why[128];

		snprintf(why, sizeof(why), "%s", process->why);
		if (process->figures.unread_bytes)
			snprintf(why, sizeof(why), "%llu bytes of its memory could not be read",
				 process->figures.unread_bytes);
		err = why[0] ? note_gap(session, GAP_REACH_UNREAD, process->pid, why) : 0;
		if (!err && process->figures.read_bytes)
			err = profile__add_meta_number(session->profile, "reach_bytes",
						       process->figures.read_bytes);
	}
	return err;
}

int session__attend_memory(struct session *session)
{
	pid_t pid = session->target.pid;
	struct stopped_threads threads = { .tids = &pid, .n = 1 };
	int err;

	if (!exit_stop__attend(&session->exit_stop))
		return 0;
	err = read_pages(session, pid);
	if (!err && session->options.reachable) {
		reach__clear(session->options.reach);
		err = search_process(session, pid, &threads);
	}
	exit_stop__release(&session->exit_stop);
	return err;
}

struct reading {
	struct session *session;
	int (*read)(struct session *session, pid_t pid);
	bool has_target; /* the target was read */
	int err;
};

/* The target may be visited twice, as itself and as one of the profile's processes. */
static bool visit_process(pid_t pid, void *context)
{
	struct reading *reading = context;
	bool is_target = pid == reading->session->target.pid;

	if (is_target && reading->has_target)
		return false;
	reading->has_target |= is_target;
	reading->err = reading->read(reading->session, pid);
	return reading->err;
}

static int read_processes(struct session *session, bool with_target,
			  int (*read)(struct session *session, pid_t pid))
{
	struct reading reading = { .session = session, .read = read };

	if (with_target)
		visit_process(session->target.pid, &reading);
	if (!reading.err)
		session__visit_processes(session, visit_process, &reading);
	return reading.err;
}

static bool is_process(pid_t pid, void *context)
{
	return true;
}

static int stop_engines(struct session *session)
{
	int err = 0;

	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->stop(session->engines[i]);
	return err;
}

static int note_stop(struct session *session, __u64 stop_ns)
{
	int err = 0;

	if (session->options.resident)
		err = profile__add_meta_number(session->profile, "resident_stop_ns", stop_ns);
	if (!err && session->options.reachable)
		err = profile__add_meta_number(session->profile, "reach_stop_ns", stop_ns);
	return err;
}

/* The processes stand still from before the engines stop counting until their memory was read, so
 * that all is of one moment. */
static int stop_and_read(struct session *session)
{
	bool is_target_running = !session->target.end_ns;
	struct error why = { 0 };
	__u64 begin_ns = clock__now_ns();
	int err, held;

	exit_stop__end(&session->exit_stop);
	if (!session__visit_processes(session, is_process, NULL))
		return 0;
	held = session__hold(session, HOLD_NS, &why);
	err = read_processes(session, is_target_running, read_pages);
	if (is_target_running)
		session->target.end_ns = clock__now_ns();
	if (!err)
		err = stop_engines(session);
	if (!err && !held && session->options.reachable)
		err = read_processes(session, is_target_running, search_held);
	if (held)
		return err ? err : note_unread(session, session->target.pid, why.text);
	session__let_go(session);
	return err ? err : note_stop(session, clock__now_ns() - begin_ns);
}

/* The command's memory was read when it exited, unless its first thread had ended by itself. */
static int note_missed(struct session *session)
{
	const struct target *target = &session->target;
	const char *why =
		target->launched
			? "its first thread ended before others, or it was traced by others"
			: "it ended before the recording";
	int err = 0;

	if (!target->end_ns)
		return 0;
	if (session->options.resident &&
	    !resident_memory__has(session->options.resident_memory, target->pid))
		err = note_gap(session, GAP_RESIDENT_UNREAD, target->pid, why);
	if (!err && session->options.reachable && !reach__has(session->options.reach, target->pid))
		err = note_gap(session, GAP_REACH_UNREAD, target->pid, why);
	return err;
}

int session__keep_rss_sample(struct session *session, const struct profile_rss_sample *sample)
{
	size_t n = session->n_rss_samples;

	if (n && session->rss_samples[n - 1].time_ns >= sample->time_ns)
		return 0;
	if (array__reserve(&session->rss_samples, &session->rss_samples_room, n + 1,
			   sizeof(*session->rss_samples)))
		return -ENOMEM;
	session->rss_samples[session->n_rss_samples++] = *sample;
	return 0;
}

int session__add_rss_samples(struct session *session)
{
	struct profile *profile = session->profile;
	__u64 end_ns = session->is_snapshot ? session->cut_ns : session->target.end_ns;
	struct profile_rss_sample sample = {
		.time_ns = end_ns - session->target.start_ns,
		.torn_ms = session->torn_ms,
	};
	int err = 0;

	if (profile->n_rss) {
		profile__add_up_rss(profile, sample.bytes);
		err = session__keep_rss_sample(session, &sample);
	}
	for (size_t i = 0; i < session->n_rss_samples && !err; i++)
		err = profile__add_rss_sample(profile, &session->rss_samples[i]);
	return err;
}

bool session__searches(const struct session *session)
{
	return session->options.reachable;
}

int session__search_held(struct session *session)
{
	reach__clear(session->options.reach);
	return read_processes(session, !session->target.end_ns, search_held);
}

int session__read_memory(struct session *session)
{
	int err;

	if (!session__reads_memory(session))
		return 0;
	if (session->is_snapshot) {
		err = read_processes(session, !session->target.end_ns, read_pages);
	} else {
		if (session->options.reachable && !session->target.end_ns)
			reach__clear(session->options.reach);
		err = note_missed(session);
		if (!err)
			err = stop_and_read(session);
	}
	return err ? err : note_searches(session);
}
