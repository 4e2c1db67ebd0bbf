// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Opens the engines of a session: the one that was asked for and, if that is preload, uprobes for
 * the processes that the library cannot be preloaded into. The second is opened when the first
 * such process is met: most commands have none, and loading the programs takes longer than a short
 * command runs.
 */
#include "session_internal.h"

#include <errno.h>

#include "clock.h"
#include "doctor.h"
#include "error.h"
#include "preload_engine.h"
#include "uprobe_engine.h"

/* Returns whether uprobes can do beside preload what the options ask for. */
static bool may_have_fallback(const struct session_options *options)
{
	/* With --live the blocks of two engines would have no common clock, so peaks and time
	 * lines could not be added. */
	return options->launches && !options->live && !options->definitions &&
	       !session_options__have_functions(options);
}

static int begin_fallback(struct session *session)
{
	struct engine *engine = session->engines[1];
	const struct engine_operations *operations = engine->operations;
	struct error error = { 0 };
	int err;

	if (!session->has_begun)
		return 0;
	err = operations->start(engine, clock__now_ns(), &error);
	if (!err && session->epoll_fd >= 0)
		err = operations->watch(engine, session->epoll_fd);
	return err ? err : operations->open_gate(engine, session->is_gate_open);
}

static int open_fallback(struct session *session, const struct handover *process)
{
	const struct handover none = { .library = process->library };
	const struct engine_options options = {
		.session = &session->options,
		.profile = session->profile,
		.target = &session->target,
		.is_fallback = true,
	};
	struct error error = { 0 };
	int err = uprobe_engine.open(&options, &session->engines[1], &error);

	if (err)
		return err;
	err = uprobe_engine.take_over(session->engines[1], &none, &error);
	if (err) {
		uprobe_engine.close(session->engines[1]);
		return err;
	}
	session->n_engines++;
	return begin_fallback(session);
}

static int take(void *context, const struct handover *process)
{
	struct session *session = context;
	struct error error = { 0 };

	if (session->n_engines == 1 && !session->no_fallback)
		session->no_fallback = open_fallback(session, process);
	if (session->no_fallback)
		return -EPERM;
	return session__operations(session, 1)->take_over(session->engines[1], process, &error);
}

static bool find(void *context, __u32 program, struct followed_by_other *out)
{
	const struct session *session = context;

	return session->n_engines > 1 &&
	       session__operations(session, 1)->find_program(session->engines[1], program, out);
}

/* Returns whether the error means that the kernel refuses uprobes. In an unprivileged user
 * namespace it does although the capabilities are there. */
bool session__lacks_uprobes(int err)
{
	return err == -EPERM || err == -ENOSYS || err == -EOPNOTSUPP;
}

/* Replaces the kernel's error by the reason that doctor finds, since the error itself seldom tells
 * the reason. */
static void explain(struct error *error)
{
	struct kernel kernel;
	struct error why;

	doctor__probe_kernel(&kernel);
	if (!kernel.is_filtered && doctor__first_obstacle(&kernel, &why))
		error__set(error, 0, "no uprobes can be set here: %.900s", why.text);
}

/*
 * If the kernel refuses uprobes, the preload engine measures a command, provided that it supports
 * the options. If it does not, *@error says what both engines lack.
 */
int session__open_engine(struct session *session, struct error *error)
{
	const struct session_options *options = &session->options;
	struct engine_options engine_options = {
		.session = options,
		.profile = session->profile,
		.target = &session->target,
	};
	struct error other = { 0 };
	int err;

	if (options->engine == SESSION_ENGINE_PRELOAD) {
		if (may_have_fallback(options))
			engine_options.others = (struct engine_others){ take, find, session };
		err = preload_engine.open(&engine_options, &session->engines[0], error);
		session->n_engines = !err;
		return err;
	}
	err = uprobe_engine.open(&engine_options, &session->engines[0], error);
	if (session__lacks_uprobes(err))
		explain(error);
	if (session__lacks_uprobes(err) && options->engine == SESSION_ENGINE_AUTO &&
	    options->launches) {
		if (preload_engine.open(&engine_options, &session->engines[0], &other)) {
			struct error first = *error;

			return error__set(error, err,
					  "%.400s; nor can a library count in the command: %s",
					  first.text, other.text);
		}
		*error = (struct error){ 0 };
		err = 0;
	}
	session->n_engines = !err;
	return err;
}
