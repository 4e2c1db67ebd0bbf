// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads how much memory a running session's processes and their control group use. */
#include "session_internal.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "proc.h"

struct use_reading {
	pid_t target;
	bool has_target; /* it may be visited twice, as itself and as one of the profile's processes */
	__u64 rss_bytes;
};

static bool add_process(pid_t pid, void *context)
{
	struct use_reading *reading = context;
	struct proc_memory memory;

	if (pid == reading->target && reading->has_target)
		return false;
	reading->has_target |= pid == reading->target;
	if (proc_memory__read(pid, &memory))
		reading->rss_bytes += memory.rss_bytes;
	return false;
}

/* A process that ends leaves its group, and with version 1 seems to be in the topmost one. */
static bool is_ending(pid_t pid)
{
	struct proc_stat stat;

	return proc_stat__read(pid, &stat) || strchr("ZXx", stat.state) ||
	       stat.flags & PROC_IS_EXITING;
}

/* Takes over @fd, the count of the group's processes that the kernel has killed. What was killed
 * before the target came into the group does not count. */
static void watch_kills(struct session *session, int fd)
{
	struct stat now, before;
	__u64 kills;

	if (fd < 0)
		return;
	if (session->kills_fd >= 0 && !fstat(fd, &now) && !fstat(session->kills_fd, &before) &&
	    now.st_dev == before.st_dev && now.st_ino == before.st_ino) {
		close(fd);
		return;
	}
	close_fd(&session->kills_fd);
	session->kills_fd = fd;
	session->kills_before = memory_group__read_kills(fd, &kills) ? kills : 0;
}

void session__watch_group(struct session *session)
{
	_cleanup_(close_fd) int fd = memory_group__open_kills(session->target.pid);
	struct memory_group group;
	bool has_group = memory_group__read(session->target.pid, &group);

	if (is_ending(session->target.pid))
		return;
	if (has_group) {
		session->target_group = group;
		session->is_in_group =
			session->group.limit_bytes && !strcmp(session->group.path, group.path);
	}
	watch_kills(session, fd);
	fd = -1;
}

__u64 session__count_kills(const struct session *session)
{
	__u64 kills;

	return session->kills_fd >= 0 && memory_group__read_kills(session->kills_fd, &kills)
		       ? kills - session->kills_before
		       : 0;
}

void session__use(struct session *session, struct session_use *out)
{
	struct use_reading reading = { .target = session->target.pid };
	struct session_progress progress = { 0 };
	const struct memory_group *group = &session->target_group;

	session__visit_processes(session, add_process, &reading);
	if (session->options.live)
		session__progress(session, &progress);
	if (!session->target.end_ns)
		session__watch_group(session);
	*out = (struct session_use){
		.rss_bytes = reading.rss_bytes,
		.live_bytes = progress.live_size_bytes,
		.group_bytes = group->limit_bytes - group->free_bytes,
		.group_limit_bytes = group->limit_bytes,
		.oom_kills = session__count_kills(session),
		.signals = { session->n_own_signals[0], session->n_own_signals[1] },
	};
}
