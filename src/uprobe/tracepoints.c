// SPDX-License-Identifier: GPL-3.0-or-later
#include "tracepoints.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Must come before the skeleton, which uses its types. */
#include "event_abi.h"

#include "abi.h"
#include "allocprof.skel.h"
#include "array.h"
#include "bpf_maps.h"
#include "cleanup.h"
#include "error.h"

struct programs {
	struct bpf_program *list[AP_TRACEPOINT_PROGRAMS];
	struct bpf_link **links[AP_TRACEPOINT_PROGRAMS];
};

#define PROGRAMS_OF(skeleton, event)                                                                 \
	(struct programs)                                                                            \
	{                                                                                            \
		.list = {                                                                          \
			[AP_BY_PERF] = (skeleton)->progs.perf_##event,                             \
			[AP_FIRST] = (skeleton)->progs.on_##event,                                 \
			[AP_AGAIN] = (skeleton)->progs.on_##event##_again,                         \
		},                                                                                 \
		.links = {                                                                         \
			[AP_BY_PERF] = &(skeleton)->links.perf_##event,                            \
			[AP_FIRST] = &(skeleton)->links.on_##event,                                \
			[AP_AGAIN] = &(skeleton)->links.on_##event##_again,                        \
		}, \
	}

static struct programs programs_at(struct allocprof_bpf *skeleton, enum ap_tracepoint at)
{
	switch (at) {
	case AP_TRACEPOINT_FORK:
		return PROGRAMS_OF(skeleton, fork);
	case AP_TRACEPOINT_EXEC:
		return PROGRAMS_OF(skeleton, exec);
	case AP_TRACEPOINT_EXIT:
		return PROGRAMS_OF(skeleton, exit);
	default:
		return PROGRAMS_OF(skeleton, prepare_exec);
	}
}

void tracepoints__choose(struct allocprof_bpf *skeleton, enum ap_tracepoint at, bool is_used,
			 bool preempts)
{
	struct programs programs = programs_at(skeleton, at);

	bpf_program__set_autoload(programs.list[AP_FIRST], is_used);
	bpf_program__set_autoload(programs.list[AP_AGAIN], is_used && preempts);
	bpf_program__set_autoload(programs.list[AP_BY_PERF], is_used && preempts);
}

static int open_tracefs(void)
{
	static const char *const paths[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	_cleanup_(close_fd) int fs = -1;
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		fd = open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !faccessat(fd, "events", F_OK, 0))
			return fd;
		close_fd(&fd);
	}
	/* In a container tracefs may not be mounted, so a mount is made that only this process
	 * sees. */
	fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int read_id(int tracefs, const char *section, __u64 *id)
{
	_cleanup_(close_fd) int fd = -1;
	char path[128], text[32];
	ssize_t n;

	snprintf(path, sizeof(path), "events/%s/id", strchr(section, '/') + 1);
	fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ENOENT;
	text[n] = '\0';
	*id = strtoull(text, NULL, 10);
	return 0;
}

bool tracepoints__have_perf(void)
{
	_cleanup_(close_fd) int tracefs = open_tracefs();
	__u64 id;

	return tracefs >= 0 && !read_id(tracefs, "tracepoint/sched/sched_process_fork", &id);
}

/* Attaches the program. Returns NULL if that fails, also if @tracefs could not be opened. */
static struct bpf_link *attach_by_perf(const struct bpf_program *program, int tracefs)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
	};
	struct bpf_link *link;
	__u64 id;
	int fd;

	if (tracefs < 0 || read_id(tracefs, bpf_program__section_name(program), &id))
		return NULL;
	attr.config = id;
	/* The event is opened for one CPU, but the program runs on all. */
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return NULL;
	link = bpf_program__attach_perf_event(program, fd);
	if (!link)
		close(fd);
	return link;
}

struct bpf_link *tracepoints__attach_by_perf(const struct bpf_program *program)
{
	_cleanup_(close_fd) int tracefs = open_tracefs();

	return attach_by_perf(program, tracefs);
}

static void detach_all_by_perf(struct allocprof_bpf *skeleton)
{
	for (int at = 0; at < AP_TRACEPOINTS; at++) {
		struct programs programs = programs_at(skeleton, (enum ap_tracepoint)at);

		bpf_link__destroy(*programs.links[AP_BY_PERF]);
		*programs.links[AP_BY_PERF] = NULL;
	}
}

/* Attaches all programs that perf calls, or none without tracefs or the right to read it. */
static void attach_all_by_perf(struct allocprof_bpf *skeleton)
{
	_cleanup_(close_fd) int tracefs = -1;

	if (!bpf_program__autoload(skeleton->progs.perf_fork))
		return;
	tracefs = open_tracefs();
	skeleton->bss->leading_program = AP_BY_PERF;
	for (int at = 0; at < AP_TRACEPOINTS; at++) {
		struct programs programs = programs_at(skeleton, (enum ap_tracepoint)at);
		const struct bpf_program *program = programs.list[AP_BY_PERF];

		if (!bpf_program__autoload(program))
			continue;
		*programs.links[AP_BY_PERF] = attach_by_perf(program, tracefs);
		if (!*programs.links[AP_BY_PERF]) {
			detach_all_by_perf(skeleton);
			skeleton->bss->leading_program = AP_FIRST;
			return;
		}
	}
}

static int attach_at(struct programs *programs, struct error *error)
{
	for (int i = AP_FIRST; i <= AP_AGAIN; i++) {
		const struct bpf_program *program = programs->list[i];

		if (!bpf_program__autoload(program))
			continue;
		*programs->links[i] = bpf_program__attach_trace(program);
		if (!*programs->links[i])
			return error__set(error, -errno, "cannot follow processes (%s): %s",
					  bpf_program__name(program), strerror(errno));
	}
	return 0;
}

int tracepoints__attach(struct allocprof_bpf *skeleton, struct error *error)
{
	int err = 0;

	/* The programs that perf calls come first, since the kernel skips these least. */
	attach_all_by_perf(skeleton);
	for (int at = 0; at < AP_TRACEPOINTS && !err; at++) {
		struct programs programs = programs_at(skeleton, (enum ap_tracepoint)at);

		err = attach_at(&programs, error);
	}
	return err;
}

__u64 tracepoints__missed(struct allocprof_bpf *skeleton, enum ap_tracepoint at,
			  struct counters *counters)
{
	struct programs programs = programs_at(skeleton, at);
	__u32 leading = bpf_program__autoload(programs.list[AP_BY_PERF])
				? skeleton->bss->leading_program
				: AP_FIRST;
	__u64 rescued = __atomic_load_n(&skeleton->bss->events_rescued[at], __ATOMIC_RELAXED);
	__u64 skipped = counters__recursion_misses(counters, programs.list[leading]);

	return skipped > rescued ? skipped - rescued : 0;
}
