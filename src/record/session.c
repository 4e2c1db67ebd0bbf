// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "probed_file.h"
#include "profile.h"
#include "sources.h"
#include "translator.h"
#include "uprobe_engine.h"

int session__open(const struct session_options *options, struct session **out, struct error *error)
{
	struct session *session = calloc(1, sizeof(*session));
	struct engine_options engine_options;
	int err = -ENOMEM;

	if (!session)
		return -ENOMEM;
	session->options = *options;
	session->target.pidfd = session->target.go_fd = session->target.exec_fd = -1;
	session->profile = profile__new();
	engine_options = (struct engine_options){
		.session = options,
		.profile = session->profile,
		.target = &session->target,
	};
	if (session->profile)
		err = uprobe_engine.open(&engine_options, &session->engine, error);
	if (err) {
		session__close(session);
		return err;
	}
	if (options->sources)
		session->profile->sources = options->sources->names;
	*out = session;
	return 0;
}

/*
 * Opens the window if the options do not delay it. Only now, when the engine is prepared: the first
 * call of a thread that counts may be of any function, and a free must not count without its malloc
 * because its probe was set first.
 */
static void begin_window(struct session *session)
{
	__u64 now_ns = clock__now_ns();

	session->start_realtime_ns = clock__ns(CLOCK_REALTIME);
	session->gate_realtime_ns = session->start_realtime_ns;
	session->engine->operations->start(session->engine, now_ns);
	if (!session->options.window.delay_ns && !session->options.window.paused)
		session__open_gate(session, true);
	/* target__go() sets the start of a command. */
	if (!session->target.launched)
		session->target.start_ns = now_ns;
}

int session__launch(struct session *session, char *const argv[],
		    const struct target_inheritance *inheritance, struct error *error)
{
	struct engine *engine = session->engine;
	int err = engine->operations->await_child(engine, true, error);

	if (err)
		return err;
	err = target__hold(&session->target, argv, inheritance, error);
	(void)engine->operations->await_child(engine, false, NULL);
	if (!err)
		err = engine->operations->launch(engine, argv, error);
	if (err)
		return err;
	begin_window(session);
	return target__go(&session->target, argv[0], error);
}

int session__attach(struct session *session, pid_t pid, struct error *error)
{
	int err = target__attach(&session->target, pid, error);

	if (!err)
		err = translator__refuse_process(pid, error);
	if (!err)
		err = session->engine->operations->attach(session->engine, error);
	if (!err && target__has_ended(&session->target))
		err = error__set(error, -ESRCH, "process %d ended while its probes were set", pid);
	if (!err)
		begin_window(session);
	return err;
}

int session__finish(struct session *session, struct error *error)
{
	int err;

	if (!session->is_snapshot && !session->target.end_ns)
		session->target.end_ns = clock__now_ns();
	err = session->engine->operations->finish(session->engine);
	if (err)
		return error__set(error, err, "cannot collect the counts: %s", strerror(-err));
	session->is_gate_open = false;
	session__collect_results(session);
	return 0;
}

bool session__file(const struct session *session, size_t index, struct probed_file *out)
{
	return session->engine->operations->file(session->engine, index, out);
}

bool session__unknown(const struct session *session, size_t file, size_t index,
		      struct session_unknown *out)
{
	const struct engine *engine = session->engine;
	struct probed_file probed;

	*out = (struct session_unknown){ 0 };
	if (session__file(session, file, &probed))
		out->name = probed_file__unknown(&probed, index, &out->ends);
	/* Without live it does not matter whether it ends blocks. */
	if (out->name && (!out->ends || session->options.live))
		out->calls = engine->operations->unknown_calls(engine, file, index);
	return out->name;
}

const struct sources *session__sources(const struct session *session)
{
	return session->options.sources;
}

bool session__lacks_source(const struct session *session, const struct source *source)
{
	struct probed_file file;

	for (size_t i = 0; session__file(session, i, &file); i++)
		for (size_t j = 0; j < source->n_functions; j++)
			if (probed_file__has(&file, source, j))
				return false;
	return true;
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
	if (session->engine)
		session->engine->operations->close(session->engine);
	profile__free(session->profile);
	target__close(&session->target);
	free(session);
}
