// SPDX-License-Identifier: GPL-3.0-or-later
#include "jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "perf_map.h"
#include "profile.h"
#include "worker.h"

/* A worker reads perf maps; these are its requests and replies. */

/* Writes a request for @n queries, which are sorted by address. */
static void perf_map__put_queries(struct wire_writer *writer, const struct perf_map_query *queries,
				  size_t n)
{
	wire__put_u64(writer, n);
	for (size_t i = 0; i < n; i++)
		wire__put_u64(writer, queries[i].address);
}

/* Reads the names of these from a reply, which has to outlive them. Returns 0, or -EPROTO if it
 * does not answer them. */
static int perf_map__get_names(struct wire_reader *reader, struct perf_map_query *queries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		queries[i].name = wire__get_string(reader, PERF_MAP_NAME_BYTES + 1);
	return wire__is_read(reader) ? 0 : -EPROTO;
}

/* worker_options.serve: reads the map in the request's descriptor, and looks up its addresses. */
static int perf_map__serve(struct worker_call *call)
{
	size_t n = wire__get_count(&call->request, sizeof(__u64));
	_cleanup_(free_ptr) struct perf_map_query *queries = calloc(n + 1, sizeof(*queries));
	struct perf_map *map;
	int err;

	if (!queries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		queries[i].address = wire__get_u64(&call->request);
	if (call->n_fds != 1 || !wire__is_read(&call->request))
		return -EINVAL;
	err = perf_map__read(call->fds[0], &map);
	if (err)
		return err;
	err = perf_map__look_up(map, queries, n);
	for (size_t i = 0; i < n && !err; i++)
		wire__put_string(&call->reply, queries[i].name);
	perf_map__free(map);
	return err;
}

/* Limit of open files; the maps of further processes are opened at the end. */
#define MAX_OPEN 256
/* How many maps may delay the worker, so that they do not keep it busy for ever. */
#define MAX_LATE 4

struct process {
	__u32 program, pid;
	pid_t own_pid; /* its number in its own PID namespace */
	uid_t uid;
	bool is_known; /* own_pid and uid are set */
	int fd;	       /* descriptor of the map; -1: it is not open */
};

struct frame {
	__u32 id;
	size_t process;
};

struct jit_names {
	struct process *processes;
	size_t n_processes, processes_room, n_open;
	struct frame *frames;
	size_t n_frames, frames_room;
	__u32 last_frame; /* ids of new frames are greater */
};

struct jit_names *jit_names__new(void)
{
	return calloc(1, sizeof(struct jit_names));
}

void jit_names__free(struct jit_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n_processes; i++)
		close_fd(&names->processes[i].fd);
	free(names->processes);
	free(names->frames);
	free(names);
}

/* Finds the effective user, and the pid in the process's own PID namespace. */
static void identify(struct process *process)
{
	_cleanup_(close_file) FILE *status = NULL;
	bool has_uid = false, has_pid = false;
	char path[64], line[512];

	snprintf(path, sizeof(path), "/proc/%u/status", process->pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		unsigned int uid;

		if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
			process->uid = uid;
			has_uid = true;
		} else if (!strncmp(line, "NSpid:", 6)) {
			char *last = strrchr(line, '\t');

			process->own_pid = last ? atoi(last + 1) : 0;
			has_pid = process->own_pid > 0;
		}
	}
	process->is_known = has_uid && has_pid;
}

static void open_map(struct jit_names *names, struct process *process)
{
	_cleanup_(close_fd) int root = -1;
	char path[64];

	if (process->fd >= 0 || names->n_open >= MAX_OPEN)
		return;
	if (!process->is_known)
		identify(process);
	if (!process->is_known)
		return;
	snprintf(path, sizeof(path), "/proc/%u/root", process->pid);
	root = open(path, O_PATH | O_CLOEXEC);
	if (root < 0)
		return;
	process->fd = perf_map__open(root, process->own_pid, process->uid);
	names->n_open += process->fd >= 0;
}

static int get_process(struct jit_names *names, __u32 program, __u32 pid, size_t *index)
{
	int err;

	for (size_t i = names->n_processes; i--;) {
		if (names->processes[i].program == program) {
			*index = i;
			return 0;
		}
	}
	err = array__reserve(&names->processes, &names->processes_room, names->n_processes + 1,
			     sizeof(*names->processes));
	if (err)
		return err;
	names->processes[names->n_processes] =
		(struct process){ .program = program, .pid = pid, .fd = -1 };
	*index = names->n_processes++;
	return 0;
}

int jit_names__add(struct jit_names *names, __u32 program, __u32 pid, __u32 frame)
{
	size_t process;
	int err;

	if (frame <= names->last_frame)
		return 0;
	err = get_process(names, program, pid, &process);
	if (!err)
		err = array__reserve(&names->frames, &names->frames_room, names->n_frames + 1,
				     sizeof(*names->frames));
	if (err)
		return err;
	names->last_frame = frame;
	names->frames[names->n_frames++] = (struct frame){ frame, process };
	open_map(names, &names->processes[process]);
	return 0;
}

/* Opens the map of a process that ended before the first try, or wrote it late. */
static void open_last(struct jit_names *names, struct process *process)
{
	_cleanup_(close_fd) int root = -1;

	open_map(names, process);
	if (process->fd >= 0)
		return;
	root = open("/", O_PATH | O_CLOEXEC);
	if (root >= 0)
		process->fd = perf_map__open(
			root, process->is_known ? process->own_pid : (pid_t)process->pid,
			process->is_known ? process->uid : geteuid());
}

struct wanted {
	struct perf_map_query query;
	__u32 frame;
};

static int compare_wanted(const void *left, const void *right)
{
	__u64 a = ((const struct wanted *)left)->query.address;
	__u64 b = ((const struct wanted *)right)->query.address;

	return (a > b) - (a < b);
}

/* A look-up of the frames of one process. */
struct look_up {
	struct worker *worker;
	const struct process *process;
	struct profile *profile;
	unsigned int n_late; /* number of maps that took too long */
};

static int note_unread(const struct look_up *look_up, int err)
{
	char path[64], why[256];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map of process %u", look_up->process->own_pid,
		 look_up->process->pid);
	if (err == -ECANCELED)
		snprintf(why, sizeof(why),
			 "it was not read: reading each of %d others took too long", MAX_LATE);
	else if (worker__has_failed(look_up->worker))
		snprintf(why, sizeof(why),
			 "it could not be read safely: the process that read it %s",
			 worker__problem(look_up->worker));
	else
		snprintf(why, sizeof(why), "it could not be read: %s", strerror(-err));
	return profile__add_unread(look_up->profile, path, why);
}

static int apply_names(struct profile *profile, const struct wanted *wanted,
		       const struct perf_map_query *queries, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const char *name = queries[i].name;
		struct profile_line line = { 0 };

		if (!name)
			continue;
		err = profile__add_function(profile, name, name, name, &line.function);
		if (!err)
			err = profile__set_frame_lines(profile, wanted[i].frame, &line, 1);
	}
	return err;
}

static int name_frames(struct look_up *look_up, struct wanted *wanted, size_t n)
{
	_cleanup_(free_ptr) struct perf_map_query *queries = calloc(n + 1, sizeof(*queries));
	struct wire_writer request = { 0 };
	struct wire_reader reply;
	int err;

	if (!queries)
		return -ENOMEM;
	qsort(wanted, n, sizeof(*wanted), compare_wanted);
	for (size_t i = 0; i < n; i++)
		queries[i] = wanted[i].query;
	perf_map__put_queries(&request, queries, n);
	err = look_up->n_late >= MAX_LATE
		      ? -ECANCELED
		      : worker__call(look_up->worker, &request, &look_up->process->fd, 1, &reply);
	wire__release(&request);
	look_up->n_late += err == -ETIMEDOUT && worker__has_failed(look_up->worker);
	if (!err && perf_map__get_names(&reply, queries, n))
		err = worker__refuse(look_up->worker);
	return err ? note_unread(look_up, err) : apply_names(look_up->profile, wanted, queries, n);
}

/* Names the frames of one process. */
static int apply_process(struct look_up *look_up, const struct frame *frames, size_t n_frames)
{
	_cleanup_(free_ptr) struct wanted *wanted = calloc(n_frames + 1, sizeof(*wanted));
	size_t n = 0;

	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < n_frames; i++) {
		const struct profile_frame *frame = &look_up->profile->frames[frames[i].id - 1];

		if (!frame->n_lines && frame->offset)
			wanted[n++] = (struct wanted){
				.query.address = frame->offset - !frame->interrupted,
				.frame = frame->id,
			};
	}
	return n ? name_frames(look_up, wanted, n) : 0;
}

static int compare_frames(const void *left, const void *right)
{
	const struct frame *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

int jit_names__apply(struct jit_names *names, struct profile *profile)
{
	struct worker *worker = worker__new(&(struct worker_options){
		.name = "allocprof-maps",
		.serve = perf_map__serve,
	});
	struct look_up look_up = { .worker = worker, .profile = profile };
	int err = 0;

	if (!worker)
		return -ENOMEM;
	if (names->n_frames)
		qsort(names->frames, names->n_frames, sizeof(*names->frames), compare_frames);
	for (size_t first = 0, last; first < names->n_frames && !err; first = last) {
		struct process *process = &names->processes[names->frames[first].process];

		look_up.process = process;
		last = first + 1;
		while (last < names->n_frames &&
		       names->frames[last].process == names->frames[first].process)
			last++;
		open_last(names, process);
		if (process->fd >= 0)
			err = apply_process(&look_up, names->frames + first, last - first);
	}
	worker__free(worker);
	return err;
}
