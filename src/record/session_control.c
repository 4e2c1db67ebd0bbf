// SPDX-License-Identifier: GPL-3.0-or-later
/* Operations on a running session. */
#include "session_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "error.h"
#include "hold.h"
#include "profile.h"
#include "reach.h"

/* So many are kept. */

/* Without memory for it the recording lacks the mark. */
static void add_mark(struct session *session, __u64 at_ns, enum mark_kind kind, const char *name)
{
	struct session_marks *marks = &session->marks;
	__u64 start_ns = session->since_ns ? session->since_ns : session->target.start_ns;
	size_t at = marks->n;
	char *copy;

	if (marks->n == PROFILE_MAX_MARKS || at_ns < start_ns || !session->options.stacks ||
	    array__reserve(&marks->list, &marks->room, marks->n + 1, sizeof(*marks->list)))
		return;
	copy = strdup(name);
	if (!copy)
		return;
	/* A copy is noted when it is written, which may be after a stop that came later than its moment. */
	for (; at && marks->list[at - 1].time_ns > at_ns - start_ns; at--)
		marks->list[at] = marks->list[at - 1];
	marks->list[at] = (struct profile_mark){ at_ns - start_ns, kind, copy };
	marks->n++;
}

void session__mark_dump(struct session *session, const char *why)
{
	add_mark(session, session->cut_ns, MARK_DUMP, why);
}

int session__add_marks(struct session *session)
{
	const struct session_marks *marks = &session->marks;
	int err = 0;

	for (size_t i = 0; i < marks->n && !err; i++)
		err = profile__add_mark(session->profile, marks->list[i].time_ns,
					marks->list[i].kind, marks->list[i].name);
	return err;
}

static void forget_marks(struct session_marks *marks)
{
	while (marks->n)
		free(marks->list[--marks->n].name);
}

int session__open_gate(struct session *session, bool open)
{
	int err = 0;

	if (session->is_gate_open && !open)
		session->marks.stops++;
	/* Most recordings count from their beginning on. */
	if (session->is_gate_open != open &&
	    (session->marks.stops || session->options.window.paused ||
	     session->options.window.delay_ns))
		add_mark(session, clock__now_ns(), open ? MARK_START : MARK_STOP, "");
	if (session->is_gate_open != open)
		session->gate_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->opens_at_ns = 0;
	session->is_gate_open = open;
	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->open_gate(session->engines[i], open);
	return err;
}

bool session__is_gate_open(const struct session *session)
{
	return session->is_gate_open;
}

void session__progress(const struct session *session, struct session_progress *progress)
{
	__u64 since_ns = session->since_ns ? session->since_ns : session->target.start_ns;

	*progress = (struct session_progress){
		.elapsed_ns = clock__now_ns() - since_ns,
		.is_counting = session__is_gate_open(session),
		.has_live = session->options.live,
	};
	for (size_t i = 0; i < session->n_engines; i++)
		session__operations(session, i)->progress(session->engines[i], progress);
}

bool session__visit_processes(const struct session *session,
			      bool (*visit)(pid_t pid, void *context), void *context)
{
	const struct profile *profile = session->profile;

	if (!session->target.end_ns && visit(session->target.pid, context))
		return true;
	for (size_t i = 0; i < profile->n_processes; i++)
		if (!profile->processes[i].end_ns && visit(profile->processes[i].pid, context))
			return true;
	return false;
}

int session__cut(struct session *session, struct error *error)
{
	int err = 0;

	if (!session->options.stacks)
		return error__set(error, -EOPNOTSUPP,
				  "stat keeps no stacks that could be written; allocprof record "
				  "does");
	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->cut(session->engines[i], &session->cut_ns);
	return err ? error__set(error, err, "cannot collect the counts: %s", strerror(-err)) : 0;
}

struct holding {
	struct hold *hold;
	__u64 until_ns;
	int added; /* number of processes added in this round, or a negative errno */
};

static bool hold_process(pid_t pid, void *context)
{
	struct holding *holding = context;
	int added = hold__add(holding->hold, pid, holding->until_ns);

	holding->added = added < 0 ? added : holding->added + added;
	return added < 0;
}

/* Repeats until no process is added, since processes that are not held yet may start others
 * meanwhile. */
int session__hold(struct session *session, __u64 most_ns, struct error *error)
{
	struct holding holding = { hold__new(), clock__now_ns() + most_ns };

	if (!holding.hold)
		return error__set(error, -ENOMEM, "out of memory");
	session->hold = holding.hold;
	if (session->exit_stop.pid &&
	    hold__borrow(holding.hold, session->exit_stop.pid, holding.until_ns)) {
		session__let_go(session);
		return error__set(error, -ENOMEM, "out of memory");
	}
	do {
		holding.added = 0;
		session__visit_processes(session, hold_process, &holding);
	} while (holding.added > 0 && clock__now_ns() < holding.until_ns);
	if (holding.added >= 0)
		return 0;
	session__let_go(session);
	return error__set(error, holding.added,
			  "cannot hold the target while its live memory is read: %s",
			  holding.added == -EPERM ? "a debugger has it, or it may not be traced"
						  : strerror(-holding.added));
}

void session__let_go(struct session *session)
{
	if (session->exit_stop.pid)
		exit_stop__resume(&session->exit_stop,
				  hold__give_back(session->hold, session->exit_stop.pid));
	hold__release(session->hold, session->target.launched ? session->target.pid : 0);
	session->hold = NULL;
	/* What was found is true of this moment only; at the end the profile needs it. */
	if (session->options.reach && !session->target.end_ns)
		reach__clear(session->options.reach);
}

/* Closes links and sockets of the parent: a BPF link stays attached, and a socket open, while any
 * process has its descriptor. */
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

void session__become_snapshot(struct session *session, bool may_be_torn, const char *why)
{
	close_links();
	for (size_t i = 0; i < session->n_engines; i++)
		session__operations(session, i)->become_snapshot(session->engines[i]);
	session->is_snapshot = true;
	session->may_be_torn = may_be_torn;
	session->log_stacks = session->profile->n_stacks;
	session->marks.is_dump = true;
	session->marks.dump_at = why;
}

int session__check_forget(const struct session *session, struct error *error)
{
	if (!session->options.live)
		return 0;
	return error__set(error, -EOPNOTSUPP,
			  "a recording with --live cannot be reset: blocks are followed from its "
			  "beginning to its end");
}

static void begin_anew(struct session *session)
{
	session->since_ns = session->cut_ns;
	session->start_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->marks.resets++;
	forget_marks(&session->marks);
}

void session__forget(struct session *session)
{
	for (size_t i = 0; i < session->n_engines; i++)
		session__operations(session, i)->forget(session->engines[i]);
	begin_anew(session);
}

void session__lose_forgotten(struct session *session)
{
	for (size_t i = 0; i < session->n_engines; i++)
		session__operations(session, i)->lose_forgotten(session->engines[i]);
}

int session__reset(struct session *session, struct error *error)
{
	int err = session__check_forget(session, error);

	if (err)
		return err;
	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->reset(session->engines[i], &session->cut_ns);
	if (err)
		return error__set(error, err, "cannot begin anew: %s", strerror(-err));
	begin_anew(session);
	return 0;
}
