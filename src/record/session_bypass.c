// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * If the engine has redirected the calls of a running process, a session has probes check for a
 * short while whether all calls come to the engine. Without the privileges for probes it checks
 * nothing.
 */
#include "session_internal.h"

#include <stdlib.h>

#include "bypass.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "inside_abi.h"
#include "profile.h"

/* The longest check, unless a test wants another one. */
#define CHECK_MS 200

void session__begin_bypass_check(struct session *session)
{
	const struct session_limits *limits = &session->options.limits;
	const struct engine *engine = session->engines[0];
	_cleanup_(free_ptr) struct inside_redirections *redirections =
		malloc(sizeof(*redirections));
	struct error error = { 0 };

	if (!engine->operations->list_redirections || !redirections ||
	    engine->operations->list_redirections(engine, redirections) ||
	    bypass__new(session->target.pid, redirections, limits->no_multi, &session->bypass,
			&error))
		return;
	session->check_end_ns = clock__now_ns() + (__u64)(limits->check_ms ?: CHECK_MS) * NS_PER_MS;
}

int session__attend_bypass_check(struct session *session)
{
	if (!session->bypass ||
	    (clock__now_ns() < session->check_end_ns && !bypass__has_enough(session->bypass)))
		return 0;
	return session__end_bypass_check(session);
}

int session__end_bypass_check(struct session *session)
{
	int err = session->bypass ? bypass__finish(session->bypass, &session->checked) : 0;

	bypass__free(session->bypass);
	session->bypass = NULL;
	return err;
}

int session__add_bypasses(const struct session *session)
{
	const struct profile_gap gap = {
		.kind = GAP_CALLS_BYPASSED,
		.number = session->checked.n_bypassed,
		.pid = session->target.pid,
		.object = session->checked.caller,
		.detail = "",
	};

	return gap.number ? profile__add_gap(session->profile, &gap) : 0;
}
