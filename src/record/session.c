// SPDX-License-Identifier: GPL-3.0-or-later
/* A session: opens engines, starts or attaches to the target, follows it until its end, and finishes the engines. */
#include "session_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "epoll.h"
#include "error.h"
#include "own_file.h"
#include "parser.h"
#include "probed_file.h"
#include "proc.h"
#include "process_set.h"
#include "profile.h"
#include "reach.h"
#include "resident_memory.h"
#include "definitions.h"
#include "translator.h"
#include "user.h"

/* Takes at most half of the memory that a limit leaves free: the command, or other processes of
 * the group, need the rest. */
void session__take_shares(struct session_options *options, struct memory_group *group)
{
	struct sysinfo info;

	options->memory_bytes = sysinfo(&info) ? 4ULL << 30 : (__u64)info.totalram * info.mem_unit;
	options->free_bytes = UINT64_MAX;
	if (!memory_group__read(getpid(), group))
		return;
	options->free_bytes = group->free_bytes;
	if (group->free_bytes / 2 < options->memory_bytes)
		options->memory_bytes = group->free_bytes / 2;
}

/* Done before there are threads, as the worker that reads files is a fork of this process. */
static int read_platform(struct session *session, struct error *error)
{
	struct parser *parser;
	int err;

	if (!session->options.command || !session->options.stacks)
		return 0;
	err = parser__new(&parser, error);
	if (err)
		return err;
	platform__read(parser, session->options.command, &session->platform);
	parser__free(parser);
	return 0;
}

int session__open(const struct session_options *options, struct session **out, struct error *error)
{
	struct session *session = calloc(1, sizeof(*session));
	int err = -ENOMEM;

	if (!session)
		return -ENOMEM;
	session->options = *options;
	session->target.pidfd = session->target.go_fd = session->target.exec_fd = -1;
	session->epoll_fd = -1;
	session->kills_fd = -1;
	session__take_shares(&session->options, &session->group);
	session->profile = profile__new();
	if (session->profile)
		err = read_platform(session, error);
	if (!err)
		err = session__open_memory(session, error);
	if (!err)
		err = session__open_engine(session, error);
	if (err) {
		session__close(session);
		return err;
	}
	if (options->definitions)
		session->profile->definitions = options->definitions->names;
	*out = session;
	return 0;
}

/*
 * Opens the window if the options do not delay it. Only now, when the engine is prepared: the first
 * call of a thread that counts may be of any function, and a free must not count without its malloc
 * because its probe was set first.
 */
static int begin_window(struct session *session, struct error *error)
{
	__u64 now_ns = clock__now_ns();
	int err = 0;

	session->start_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->gate_realtime_ns = session->start_realtime_ns;
	session->has_begun = true;
	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->start(session->engines[i], now_ns, error);
	if (err)
		return err;
	/* All engines count times from this moment. */
	session->target.start_ns = now_ns;
	if (session->options.window.delay_ns || session->options.window.paused)
		return 0;
	return session__open_gate(session, true);
}

/* Refuses to run the command as another user with shared memory, which that user's processes could
 * forge, while root acts on it. */
static int check_user(const struct engine *engine, const struct target_user *user,
		      struct error *error)
{
	if (!engine->operations->environment || !user || user->uid == geteuid())
		return 0;
	return error__set(error, -EPERM,
			  "cannot run the command as another user with the engine %s, whose shared "
			  "memory is this user's; that engine needs no privileges: run allocprof "
			  "itself as that user (sudo -u)",
			  engine->operations->name);
}

/* Returns whether a later engine than @engine has the file, too, and knows more about it. */
static bool is_repeated(const struct session *session, size_t engine,
			const struct probed_file *file)
{
	struct probed_file other;

	for (size_t i = engine + 1; i < session->n_engines && file->build_id[0]; i++)
		for (size_t j = 0;
		     session__operations(session, i)->file(session->engines[i], j, &other); j++)
			if (!strcmp(file->build_id, other.build_id))
				return true;
	return false;
}

bool session__next_file(const struct session *session, struct session_files *at)
{
	for (size_t i = 0; i < session->n_engines; i++)
		while (session__operations(session, i)
			       ->file(session->engines[i], at->n_seen[i], &at->file)) {
			at->n_seen[i]++;
			at->engine = i;
			if (!is_repeated(session, i, &at->file))
				return true;
		}
	return false;
}

static void tell_files(struct session *session)
{
	while (session->options.found && session__next_file(session, &session->told))
		session->options.found(&session->told.file);
}

int session__launch(struct session *session, char *const argv[],
		    const struct target_inheritance *inheritance, struct error *error)
{
	struct target_inheritance inherited = *inheritance;
	struct engine *engine = session->engines[0];
	int err = check_user(engine, inheritance->user, error);

	session->argv = argv;
	if (!err && engine->operations->environment)
		err = engine->operations->environment(engine, argv, &inherited.environment);
	/* Without --follow only the command's own process hits the probes, so no other process
	 * would be slowed down by them. */
	inherited.isolates = session->options.isolates && session->options.follow;
	if (!err)
		err = engine->operations->await_child(engine, true, error);
	if (err)
		return err;
	err = target__hold(&session->target, argv, &inherited, error);
	(void)engine->operations->await_child(engine, false, NULL);
	if (!err)
		err = engine->operations->launch(engine, argv, error);
	if (err)
		return err;
	session__watch_group(session);
	err = begin_window(session, error) ?: session__begin_memory(session);
	if (err)
		return err;
	err = target__go(&session->target, argv[0], error);
	if (!err)
		tell_files(session);
	return err;
}

/* Each search finds only processes that were forked by one that was not attached to yet: soon all are. */
#define MOST_SEARCHES 100

/* Attaches to the processes of the set that were forked after the last search, by a process that was
 * not attached to yet: the engine follows only what its own processes fork. */
static int attach_late(struct session *session, struct process_set *set, struct error *error)
{
	const struct engine_operations *operations = session__operations(session, 0);
	int err = 0;

	if (!session->target.is_open)
		return 0;
	for (int i = 0; i < MOST_SEARCHES && !err; i++) {
		size_t n = target__n_processes(&session->target);

		err = process_set__search_again(set, error) ?: target__add(&session->target, set);
		if (err || target__n_processes(&session->target) == n)
			return err;
		err = operations->attach_more(session->engines[0], n, error);
	}
	return err;
}

int session__attach(struct session *session, struct process_set *set, struct error *error)
{
	struct target *target = &session->target;
	/* The engine is told of what has started since it was opened. */
	int err = process_set__search_again(set, error) ?: target__attach(target, set, error);

	for (size_t i = 0; i < target__n_processes(target) && !err; i++)
		err = translator__refuse_process(target__process(target, i), error);
	if (!err)
		err = session__operations(session, 0)->attach(session->engines[0], error);
	if (!err)
		err = attach_late(session, set, error);
	if (!err)
		attached__read(target, !session->options.omits_arguments, &session->attached);
	/* Those among them that are not followed were there before. */
	if (!err && session->options.follow)
		err = attached__list_children(target, !session->options.omits_arguments,
					      &session->attached.children);
	if (!err && target__has_ended(target))
		err = error__set(error, -ESRCH, "process %d ended while its probes were set",
				 target->pid);
	if (!err)
		session__watch_group(session);
	if (!err)
		err = session__begin_memory(session);
	if (!err)
		err = begin_window(session, error);
	if (!err)
		session__begin_bypass_check(session);
	if (!err)
		tell_files(session);
	return err;
}

/* Maximum interval between reads of the engine's events (engine.h). */
#define TICK_MS 100
/* This interval is shorter, since each call costs two traps while redirected calls are checked. */
#define BYPASS_TICK_MS 5

/* How many processes are looked at to find an ancestor of the signal's sender. */
#define MOST_ANCESTORS 64

/*
 * Returns whether the command, or a process that it has started, has sent the signal. Such a signal goes to the command's process
 * group, in which allocprof is, so the command has it already. A sender that has ended is not recognised.
 */
static bool is_of_command(const struct session *session, pid_t sender)
{
	struct proc_stat stat = { .parent = sender };

	for (int i = 0; i < MOST_ANCESTORS && stat.parent > 0; i++) {
		if (stat.parent == session->target.pid)
			return true;
		if (proc_stat__read(stat.parent, &stat))
			return false;
	}
	return false;
}

/* Counts a signal that is meant for this process. Returns whether it is one. */
static bool is_own(struct session *session, __u32 signo)
{
	if (!own_signals__have(session->options.own_signals, signo))
		return false;
	session->n_own_signals[signo == SIGUSR2]++;
	return true;
}

/* Handles signals. Returns whether the recording is to end. */
static bool handle_signals(struct session *session, int signal_fd)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGCHLD)
			continue;
		if (is_own(session, info.ssi_signo))
			continue;
		if (session->target.launched && is_of_command(session, info.ssi_pid))
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

static int ms_until(__u64 at_ns, __u64 now_ns, int most)
{
	__u64 ms = at_ns > now_ns ? (at_ns - now_ns) / NS_PER_MS + 1 : 0;

	return ms < (__u64)most ? (int)ms : most;
}

static int timeout_ms(const struct session *session, __u64 now_ns, __u64 end_ns)
{
	int timeout = session->is_checking ? BYPASS_TICK_MS : TICK_MS;

	for (size_t i = 0; i < session->n_engines; i++)
		timeout = session__operations(session, i)->timeout_ms(session->engines[i], timeout);
	if (end_ns)
		timeout = ms_until(end_ns, now_ns, timeout);
	if (session->opens_at_ns)
		timeout = ms_until(session->opens_at_ns, now_ns, timeout);
	return timeout;
}

static int watch_engines(const struct session *session, int epoll_fd)
{
	int err = 0;

	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->watch(session->engines[i], epoll_fd);
	return err;
}

static int read_engines(struct session *session)
{
	int err = 0;

	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->read(session->engines[i]);
	return err;
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
	if ((err = watch_engines(session, epoll_fd)) ||
	    /* Else the descriptor would be readable while other processes run on. */
	    (session->target.ends_with && (err = epoll__watch(epoll_fd, session->target.pidfd))) ||
	    (err = epoll__watch(epoll_fd, signal_fd)) ||
	    (attendant && attendant->fd >= 0 && (err = epoll__watch(epoll_fd, attendant->fd))))
		return error__set(error, err, "cannot wait for events: %s", strerror(-err));
	session->epoll_fd = epoll_fd;
	if (session->options.window.delay_ns)
		session->opens_at_ns = session->target.start_ns + session->options.window.delay_ns;

	while (!target__has_ended(&session->target)) {
		__u64 now = clock__now_ns();

		/* The window comes first, so that one that is due opens, however late it is. */
		if (session->opens_at_ns && now >= session->opens_at_ns)
			err = session__open_gate(session, true);
		if (err || (end_ns && now >= end_ns))
			break;
		epoll_wait(epoll_fd, ready, 4, timeout_ms(session, now, end_ns));
		err = read_engines(session);
		if (!err)
			err = session__attend_bypass_check(session);
		if (!err && attendant)
			err = attendant->attend(session, attendant->context);
		if (!err)
			err = session__attend_memory(session);
		if (err || handle_signals(session, signal_fd))
			break;
	}
	session->epoll_fd = -1;
	return err ? error__set(error, err, "the recording cannot continue: %s", strerror(-err))
		   : 0;
}

int session__finish(struct session *session, struct error *error)
{
	int err = session->is_snapshot ? 0 : session__end_bypass_check(session);

	if (!err)
		err = session__read_memory(session);
	if (!session->is_snapshot && !session->target.end_ns)
		session->target.end_ns = clock__now_ns();
	/* The last engine is finished first, since the first engine's processes may be among its
	 * own. */
	for (size_t i = session->n_engines; i-- > 0 && !err;) {
		err = session__operations(session, i)->finish(session->engines[i]);
		if (err == -EAGAIN && session->may_be_torn) {
			session->torn_ms = (clock__now_ns() - session->cut_ns) / NS_PER_MS + 1;
			err = 0;
		}
	}
	session->is_gate_open = false;
	if (!err)
		err = session__complete_profile(session);
	if (!err)
		err = session__add_rss_samples(session) ?: session__add_marks(session);
	if (!err && !session->is_snapshot)
		tell_files(session);
	return err ? error__set(error, err, "cannot collect the counts: %s", strerror(-err)) : 0;
}

bool session__memory_group(const struct session *session, struct session_memory *out)
{
	const struct session_options *options = &session->options;

	if (!session->group.limit_bytes)
		return false;
	*out = (struct session_memory){
		.group = session->group.path,
		.limit_bytes = session->group.limit_bytes,
		.free_bytes = session->group.free_bytes,
		.own_bytes = memory_group__own_bytes(),
		.most_bytes = options->live && !options->max_live
				      ? options->memory_bytes / SESSION_BLOCKS_SHARE +
						options->memory_bytes / SESSION_RECORDS_SHARE
				      : 0,
	};
	return true;
}

const char *session__engine(const struct session *session)
{
	return session__operations(session, 0)->name;
}

__u64 session__start_realtime_ns(const struct session *session)
{
	return session->start_realtime_ns;
}

__u64 session__gate_realtime_ns(const struct session *session)
{
	return session->gate_realtime_ns;
}

pid_t session__target_pid(const struct session *session)
{
	return session->target.pid;
}

void session__close(struct session *session)
{
	if (!session)
		return;
	session__free_bypass_check(session);
	while (session->n_engines) {
		struct engine *engine = session->engines[--session->n_engines];

		engine->operations->close(engine);
	}
	own_files__free(session->salvaged);
	resident_memory__free(session->options.resident_memory);
	reach__free(session->options.reach);
	free(session->rss_samples);
	for (size_t i = 0; i < session->marks.n; i++)
		free(session->marks.list[i].name);
	free(session->marks.list);
	profile__free(session->profile);
	target__close(&session->target);
	attached__release(&session->attached);
	platform__release(&session->platform);
	close_fd(&session->kills_fd);
	free(session);
}
