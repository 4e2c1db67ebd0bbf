// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * If the engine has redirected the calls of running processes, a session has probes check for a short
 * while whether all calls come to the engine, in one process of each program. Without the privileges for
 * probes it checks nothing.
 */
#include "session_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "bypass.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "inside_abi.h"
#include "profile.h"

/* The longest check, unless a test wants another one. */
#define CHECK_MS 200

static struct file_identity find_program(pid_t pid)
{
	struct file_identity identity = { 0 };
	_cleanup_(close_fd) int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		(void)file_identity__of(fd, &identity);
	return identity;
}

static bool is_checked(const struct session *session, const struct file_identity *program)
{
	for (size_t i = 0; i < session->n_checks; i++)
		if (program->inode && file_identity__is_same(&session->checks[i].program, program))
			return true;
	return false;
}

/* Begins to check the target's process number @index, unless another one of its program is checked. */
static void begin_check(struct session *session, size_t index,
			struct inside_redirections *redirections)
{
	const struct engine *engine = session->engines[0];
	struct session_check *check = &session->checks[session->n_checks];
	struct session_check begun = { .pid = target__process(&session->target, index) };
	struct error error = { 0 };

	begun.program = find_program(begun.pid);
	if (is_checked(session, &begun.program) ||
	    engine->operations->list_redirections(engine, index, redirections) ||
	    bypass__new(begun.pid, redirections, session->options.limits.no_multi, &begun.bypass,
			&error))
		return;
	begun.end_ns =
		clock__now_ns() + (__u64)(session->options.limits.check_ms ?: CHECK_MS) * NS_PER_MS;
	*check = begun;
	session->n_checks++;
}

void session__begin_bypass_check(struct session *session)
{
	_cleanup_(free_ptr) struct inside_redirections *redirections =
		malloc(sizeof(*redirections));

	if (!session->engines[0]->operations->list_redirections || !redirections)
		return;
	for (size_t i = 0; i < target__n_processes(&session->target); i++)
		if (session->n_checks < MOST_CHECKS)
			begin_check(session, i, redirections);
	session->is_checking = session->n_checks > 0;
}

static int end_check(struct session_check *check)
{
	int err = check->bypass ? bypass__finish(check->bypass, &check->result) : 0;

	bypass__free(check->bypass);
	check->bypass = NULL;
	return err;
}

/* Each process's check ends by itself, since its calls take two traps each meanwhile. */
int session__attend_bypass_check(struct session *session)
{
	bool any = false;
	int err = 0;

	for (size_t i = 0; i < session->n_checks && session->is_checking && !err; i++) {
		struct session_check *check = &session->checks[i];

		if (check->bypass &&
		    (clock__now_ns() >= check->end_ns || bypass__has_enough(check->bypass)))
			err = end_check(check);
		any |= check->bypass != NULL;
	}
	session->is_checking = any;
	return err;
}

int session__end_bypass_check(struct session *session)
{
	int err = 0;

	for (size_t i = 0; i < session->n_checks; i++) {
		int failed = end_check(&session->checks[i]);

		if (!err)
			err = failed;
	}
	session->is_checking = false;
	return err;
}

void session__free_bypass_check(struct session *session)
{
	for (size_t i = 0; i < session->n_checks; i++) {
		bypass__free(session->checks[i].bypass);
		free(session->checks[i].result.caller);
	}
}

__u64 session__checked_calls(const struct session *session)
{
	__u64 n = 0;

	for (size_t i = 0; i < session->n_checks; i++)
		n += session->checks[i].result.n_calls;
	return n;
}

int session__add_bypasses(const struct session *session)
{
	int err = 0;

	for (size_t i = 0; i < session->n_checks && !err; i++) {
		const struct session_check *check = &session->checks[i];
		const struct profile_gap gap = {
			.kind = GAP_CALLS_BYPASSED,
			.number = check->result.n_bypassed,
			.pid = check->pid,
			.object = check->result.caller,
			.detail = "",
		};

		if (gap.number)
			err = profile__add_gap(session->profile, &gap);
	}
	return err;
}
