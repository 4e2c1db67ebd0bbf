// SPDX-License-Identifier: GPL-3.0-or-later
/* The event loop of a session. */
#include "session_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "file.h"
#include "proc.h"

/* Maximum interval between reads of the engine's events (engine.h). */
#define TICK_MS 100

/* Processes that are looked at to find a sender's ancestor. */
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

/* Returns whether the recording is to end. */
static bool handle_signals(struct session *session, int signal_fd)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGCHLD)
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

static int until(__u64 at_ns, __u64 now_ns, int most)
{
	__u64 ms = at_ns > now_ns ? (at_ns - now_ns) / NS_PER_MS + 1 : 0;

	return ms < (__u64)most ? (int)ms : most;
}

static int timeout_ms(const struct session *session, __u64 now_ns, __u64 end_ns)
{
	int timeout = TICK_MS;

	for (size_t i = 0; i < session->n_engines; i++)
		timeout = session__operations(session, i)->timeout_ms(session->engines[i], timeout);
	if (end_ns)
		timeout = until(end_ns, now_ns, timeout);
	if (session->opens_at_ns)
		timeout = until(session->opens_at_ns, now_ns, timeout);
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
	    (err = epoll__watch(epoll_fd, session->target.pidfd)) ||
	    (err = epoll__watch(epoll_fd, signal_fd)) ||
	    (attendant && attendant->fd >= 0 && (err = epoll__watch(epoll_fd, attendant->fd))))
		return error__set(error, err, "cannot wait for events: %s", strerror(-err));
	session->epoll_fd = epoll_fd;
	if (session->options.window.delay_ns)
		session->opens_at_ns = session->target.start_ns + session->options.window.delay_ns;

	while (!target__has_ended(&session->target)) {
		__u64 now = clock__now_ns();

		/* First, so that a window that is due opens, however late it is. */
		if (session->opens_at_ns && now >= session->opens_at_ns)
			err = session__open_gate(session, true);
		if (err || (end_ns && now >= end_ns))
			break;
		epoll_wait(epoll_fd, ready, 4, timeout_ms(session, now, end_ns));
		err = read_engines(session);
		if (!err && attendant)
			err = attendant->attend(session, attendant->context);
		if (err || handle_signals(session, signal_fd))
			break;
	}
	session->epoll_fd = -1;
	return err ? error__set(error, err, "the recording cannot continue: %s", strerror(-err))
		   : 0;
}
