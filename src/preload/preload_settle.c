// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the shared memory once processes have completed the entries that they are writing, and the command has begun. */
#include "preload_engine_internal.h"

#include <unistd.h>

#include "clock.h"
#include "target.h"

/* Returns whether a process runs that may be writing an entry. Also returns false if none was
 * found by @until_ns. */
static bool any_runs(const struct preload_engine *engine, const struct preload_results *counted,
		     __u64 until_ns)
{
	const struct target *target = engine->target;

	/* The command may not have written its number yet. */
	if (!target->waited && preload_engine__runs(engine, target->pid))
		return true;
	for (size_t i = 0; i < counted->n_programs && clock__now_ns() < until_ns; i++) {
		const struct preload_program *program = &counted->programs[i];

		if (program->end == INSIDE_RUNS && !program->in_other_namespace &&
		    preload_engine__runs(engine, program->pid ? program->pid : program->writer))
			return true;
	}
	return false;
}

#define SETTLE_NS     (2 * NS_PER_S)
#define LOOK_AGAIN_NS (2 * NS_PER_MS)

/* Waits until the only entries that are being written are those that nobody completes, or until
 * @until_ns. A process that writes an entry may be waiting for a table or an answer. */
static int settle(struct preload_engine *engine, __u64 until_ns)
{
	for (;;) {
		__u64 begin_ns = clock__now_ns(), took_ns, awaited = 0;
		int err = preload_engine__take_refused(engine);

		if (!err)
			err = preload_engine__take_modules(engine);
		if (!err)
			err = preload__count_awaited(engine->preload, &awaited);
		took_ns = clock__now_ns() - begin_ns;
		if (err || awaited <= engine->n_unsettled || begin_ns + took_ns >= until_ns)
			return err;
		/* At most half of the time is spent on looking. */
		usleep((took_ns > LOOK_AGAIN_NS ? took_ns : LOOK_AGAIN_NS) / 1000);
	}
}

bool preload_engine__has_entry(const struct preload_results *counted, __u32 pid, bool *begins)
{
	*begins = false;
	for (size_t i = 0; i < counted->n_programs; i++) {
		if (counted->programs[i].pid == pid && !counted->programs[i].in_other_namespace)
			return true;
		*begins |= counted->programs[i].writer == pid;
	}
	return false;
}

/* Returns whether the command runs and its dynamic linker may not have loaded the library yet. */
static bool command_may_begin(const struct preload_engine *engine,
			      const struct preload_results *counted)
{
	const struct target *target = engine->target;

	if (engine->is_command_given_up || counted->n_begun || counted->n_programs ||
	    engine->is_command_by_other || engine->command_refusal >= 0)
		return false;
	return target->launched && !target->waited && target__is_running(target);
}

int preload_engine__read(struct preload_engine *engine, struct preload_results *out)
{
	__u64 until_ns = clock__now_ns() + SETTLE_NS;
	bool may_begin;
	int err;

	for (;;) {
		err = preload__read(engine->preload, out);
		if (err)
			return err;
		may_begin = command_may_begin(engine, out);
		if (clock__now_ns() >= until_ns ||
		    (!may_begin &&
		     (out->n_awaited <= engine->n_unsettled || !any_runs(engine, out, until_ns))))
			break;
		preload_results__free(out);
		err = settle(engine, until_ns);
		if (err)
			return err;
		if (may_begin)
			usleep(LOOK_AGAIN_NS / 1000);
	}
	engine->n_unsettled = out->n_awaited;
	if (may_begin) {
		engine->is_command_given_up = true;
		preload__leave_library(engine->preload);
	}
	return 0;
}
