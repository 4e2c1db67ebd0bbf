// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes a profile of what processes have kept in files of their own, with no session beside them. */
#include "session_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "own_file.h"
#include "profile.h"
#include "salvage_engine.h"

static __u64 realtime_of(const struct own_file *file, __u64 monotonic_ns)
{
	return monotonic_ns - file->origin.monotonic_ns + file->origin.realtime_ns;
}

/* Returns when the last of the processes ended, or when the reading is, CLOCK_MONOTONIC of the machine on which
 * they ran. The end of one that could not say it is taken to be when its file was written to last. */
static __u64 end_of(const struct own_files *files)
{
	__u64 last_ns = 0;

	for (size_t i = 0; i < own_files__count(files); i++) {
		const struct own_file *file = own_files__get(files, i);
		__u64 end_ns = file->program.end_ns;

		if (file->runs)
			end_ns = clock__now_ns();
		else if (file->program.ended == INSIDE_RUNS)
			end_ns = file->modified_ns - file->origin.realtime_ns +
				 file->origin.monotonic_ns;
		if (end_ns < file->begin_ns || end_ns > AP_MAX_SUM)
			end_ns = file->begin_ns;
		if (end_ns > last_ns)
			last_ns = end_ns;
	}
	return last_ns;
}

/* Describes the processes as a command that was launched and has ended, or goes on. */
static void describe(struct session *session)
{
	const struct own_files *files = session->salvaged;
	const struct own_file *first = own_files__get(files, 0);
	struct target *target = &session->target;

	session->argv = own_files__command(files);
	session->start_realtime_ns = realtime_of(first, first->begin_ns);
	target->launched = true;
	target->pid = first->program.pid;
	target->start_ns = first->begin_ns;
	target->end_ns = end_of(files);
	target->waited = true;
	for (size_t i = 0; i < own_files__count(files); i++)
		target->waited &= !own_files__get(files, i)->runs;
}

/* Reads the files once. Returns -EAGAIN if a process with --live counted meanwhile. */
static int read_files(struct session *session, char *const *paths, size_t n, struct error *error)
{
	struct engine_options options;
	int err = own_files__open(paths, n, &session->salvaged, error);

	if (err)
		return err;
	own_files__configure(session->salvaged, &session->options);
	describe(session);
	options = (struct engine_options){
		.session = &session->options,
		.profile = session->profile,
		.target = &session->target,
	};
	session->cut_ns = clock__now_ns();
	err = salvage_engine__open(session->salvaged, &options, &session->engines[0], error);
	session->n_engines = !err;
	return err ? err : session__operations(session, 0)->finish(session->engines[0]);
}

static int salvage_once(char *const *paths, size_t n, bool may_be_torn, struct session **out,
			struct error *error)
{
	struct session *session = calloc(1, sizeof(*session));
	int err = -ENOMEM;

	if (!session)
		return error__set(error, -ENOMEM, "no memory");
	session->target.pidfd = session->target.go_fd = session->target.exec_fd = -1;
	session->epoll_fd = session->kills_fd = -1;
	session->profile = profile__new();
	if (session->profile)
		err = read_files(session, paths, n, error);
	if (err == -EAGAIN && may_be_torn) {
		session->torn_ms = (clock__now_ns() - session->cut_ns) / NS_PER_MS + 1;
		err = 0;
	}
	if (!err)
		err = session__complete_profile(session);
	if (err)
		session__close(session);
	else
		*out = session;
	return err;
}

/* How often the file of a process that allocates meanwhile is read. */
#define TRIES 3

int session__salvage(char *const *paths, size_t n, struct session **out, struct error *error)
{
	int err = -EAGAIN;

	for (int i = 1; i <= TRIES && err == -EAGAIN; i++)
		err = salvage_once(paths, n, i == TRIES, out, error);
	return !err || error->text[0]
		       ? err
		       : error__set(error, err, "cannot collect the counts: %s", strerror(-err));
}

bool session__salvaged(const struct session *session, size_t index, struct session_salvaged *out)
{
	const struct own_file *file;

	if (!session->salvaged || index >= own_files__count(session->salvaged))
		return false;
	file = own_files__get(session->salvaged, index);
	*out = (struct session_salvaged){
		.path = file->path,
		.pid = file->program.pid,
		.end = file->found_no_room		      ? SALVAGED_NO_ROOM
		       : !file->program.pid		      ? SALVAGED_UNBEGUN
		       : file->runs			      ? SALVAGED_RUNS
		       : file->is_elsewhere		      ? SALVAGED_ELSEWHERE
		       : file->program.ended == INSIDE_EXITED ? SALVAGED_EXITED
		       : file->program.ended == INSIDE_EXECED ? SALVAGED_EXECED
							      : SALVAGED_KILLED,
	};
	return true;
}

const char *session__salvage_skipped(const struct session *session, size_t index)
{
	return session->salvaged ? own_files__skipped(session->salvaged, index) : NULL;
}
