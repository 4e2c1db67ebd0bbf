// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the resident memory of a session's processes (--resident): that of the command when it
 * exits, and that of processes that run on when the recording ends, or a copy is made. */
#include "session_internal.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "profile.h"
#include "resident_memory.h"

/* How long is waited at most until all threads stand still. */
#define HOLD_NS (2 * NS_PER_S)

int session__open_resident(struct session *session, struct error *error)
{
	if (!session->options.resident)
		return 0;
	session->options.resident_memory = resident_memory__new();
	return session->options.resident_memory ? 0 : error__set(error, -ENOMEM, "out of memory");
}

/* Notes why the memory of the process is not known. Fails with -ENOMEM. */
static int note_unread(struct session *session, pid_t pid, const char *why)
{
	const struct profile_gap gap = {
		.kind = GAP_RESIDENT_UNREAD,
		.number = 1,
		.pid = pid,
		.object = "",
		.detail = why,
	};

	return profile__add_gap(session->profile, &gap);
}

int session__begin_resident(struct session *session)
{
	pid_t pid = session->target.pid;
	int err;

	if (!session->options.resident)
		return 0;
	if (!session->target.launched)
		err = resident_memory__read_before(session->options.resident_memory, pid);
	else
		err = exit_stop__begin(&session->exit_stop, pid);
	return err && err != -ENOMEM ? note_unread(session, pid, strerror(-err)) : err;
}

static int read_process(struct session *session, pid_t pid)
{
	int err = resident_memory__read(session->options.resident_memory, pid);

	if (err == -ENOENT || err == -ESRCH)
		return 0; /* it has ended */
	return err && err != -ENOMEM ? note_unread(session, pid, strerror(-err)) : err;
}

int session__attend_resident(struct session *session)
{
	int err;

	if (!exit_stop__attend(&session->exit_stop))
		return 0;
	err = read_process(session, session->target.pid);
	exit_stop__release(&session->exit_stop);
	return err;
}

struct reading {
	struct session *session;
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
	reading->err = read_process(reading->session, pid);
	return reading->err;
}

static int read_processes(struct session *session)
{
	struct reading reading = { .session = session };

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

/* The processes stand still from before the engines stop counting until their pages were read, so
 * that both are of one moment. */
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
	err = read_processes(session);
	if (is_target_running)
		session->target.end_ns = clock__now_ns();
	if (!err)
		err = stop_engines(session);
	if (!held) {
		session__let_go(session);
		return err ? err
			   : profile__add_meta_number(session->profile, "resident_stop_ns",
						      clock__now_ns() - begin_ns);
	}
	return err ? err : note_unread(session, session->target.pid, why.text);
}

/* The command's memory was read when it exited, unless its first thread had ended by itself. */
static int note_missed(struct session *session)
{
	const struct target *target = &session->target;

	if (!target->end_ns || resident_memory__has(session->options.resident_memory, target->pid))
		return 0;
	return note_unread(
		session, target->pid,
		target->launched
			? "its first thread ended before others, or it was traced by others"
			: "it ended before the recording");
}

int session__read_resident(struct session *session)
{
	int err;

	if (!session->options.resident)
		return 0;
	if (session->is_snapshot)
		return read_processes(session);
	err = note_missed(session);
	return err ? err : stop_and_read(session);
}
