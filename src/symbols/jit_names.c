// SPDX-License-Identifier: GPL-3.0-or-later
#include "jit_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena.h"
#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "jit_dump.h"
#include "jit_files.h"
#include "jit_query.h"
#include "perf_map.h"
#include "profile.h"
#include "worker.h"

/* A worker reads the files; these are its requests and replies. */

enum file_kind {
	FILE_MAP,
	FILE_DUMP,
};

/* Writes a request for @n queries, which are sorted by address. */
static void put_queries(struct wire_writer *writer, enum file_kind kind,
			const struct jit_query *queries, size_t n)
{
	wire__put_u32(writer, kind);
	wire__put_u64(writer, n);
	for (size_t i = 0; i < n; i++) {
		wire__put_u64(writer, queries[i].address);
		wire__put_u64(writer, queries[i].time_ns);
	}
}

/* Reads the answers from a reply, which has to outlive them. Returns 0, or -EPROTO if they are none. */
static int get_answers(struct wire_reader *reader, struct jit_query *queries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		queries[i].name = wire__get_string(reader, JIT_NAME_BYTES + 1);
		queries[i].file = wire__get_string(reader, JIT_FILE_BYTES + 1);
		queries[i].line = wire__get_u32(reader);
	}
	return wire__is_read(reader) ? 0 : -EPROTO;
}

static int look_up_in_map(int fd, struct jit_query *queries, size_t n, struct arena *texts)
{
	struct perf_map *map;
	int err = perf_map__read(fd, &map);

	if (err)
		return err;
	err = perf_map__look_up(map, queries, n);
	for (size_t i = 0; i < n && !err; i++) {
		const char *name = queries[i].name;

		queries[i].name = name ? arena__string(texts, name, strlen(name)) : NULL;
		if (name && !queries[i].name)
			err = -ENOMEM;
	}
	perf_map__free(map);
	return err;
}

/* worker_options.serve: reads the file in the request's descriptor, and looks up its addresses. */
static int serve(struct worker_call *call)
{
	enum file_kind kind = wire__get_u32(&call->request);
	size_t n = wire__get_count(&call->request, 2 * sizeof(__u64));
	_cleanup_(free_ptr) struct jit_query *queries = calloc(n + 1, sizeof(*queries));
	_cleanup_(arena__release) struct arena texts = { 0 };
	int err;

	if (!queries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		queries[i].address = wire__get_u64(&call->request);
		queries[i].time_ns = wire__get_u64(&call->request);
	}
	if (call->n_fds != 1 || !wire__is_read(&call->request))
		return -EINVAL;
	err = kind == FILE_DUMP ? jit_dump__look_up(call->fds[0], queries, n, &texts)
				: look_up_in_map(call->fds[0], queries, n, &texts);
	for (size_t i = 0; i < n && !err; i++) {
		wire__put_string(&call->reply, queries[i].name);
		wire__put_string(&call->reply, queries[i].file);
		wire__put_u32(&call->reply, queries[i].line);
	}
	return err;
}

/* Limit of open files; those of further processes are opened at the end. */
#define MAX_OPEN 256
/* How many files may delay the worker, so that they do not keep it busy for ever, and how long all may take. */
#define MAX_LATE    4
#define MAX_WORK_NS (240 * NS_PER_S)

struct process {
	__u32 program;
	size_t n_frames; /* frames that were first seen in it */
	struct jit_files files;
};

struct frame {
	__u32 id;
	__u64 time_ns;
	size_t process;
};

struct jit_names {
	struct jit_names_options options;
	struct process *processes;
	size_t n_processes, processes_room, n_open;
	struct frame *frames;
	size_t n_frames, frames_room;
	__u32 last_frame;      /* ids of new frames are greater */
	struct timespec begin; /* CLOCK_REALTIME, as coarse as the times of files */
};

struct jit_names *jit_names__new(const struct jit_names_options *options)
{
	struct jit_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->options = *options;
	clock_gettime(CLOCK_REALTIME_COARSE, &names->begin);
	return names;
}

void jit_names__free(struct jit_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n_processes; i++)
		jit_files__close(&names->processes[i].files);
	free(names->processes);
	free(names->frames);
	free(names);
}

static void visit_mapped(void *to, const struct mapped_file *file)
{
	jit_files__open_dump(to, file);
}

/* Looks for new files of the process. What it has mapped is read rarely, as that may be long. */
static void open_files(struct jit_names *names, struct process *process)
{
	struct jit_files *files = &process->files;
	bool dumps = !(process->n_frames & (process->n_frames - 1));
	size_t n_before = jit_files__n_open(files);

	if (names->n_open >= MAX_OPEN)
		return;
	jit_files__open(files, dumps);
	/* The process may have ended. */
	if (dumps && !files->n_dumps && names->options.each_mapped)
		names->options.each_mapped(names->options.context, files->pid, visit_mapped, files);
	names->n_open += jit_files__n_open(files) - n_before;
}

static int get_process(struct jit_names *names, const struct jit_place *place, size_t *index)
{
	struct process *process;
	int err;

	for (size_t i = names->n_processes; i--;) {
		if (names->processes[i].program == place->program) {
			*index = i;
			return 0;
		}
	}
	err = array__reserve(&names->processes, &names->processes_room, names->n_processes + 1,
			     sizeof(*names->processes));
	if (err)
		return err;
	process = &names->processes[names->n_processes];
	*process = (struct process){ .program = place->program };
	jit_files__init(&process->files, place->pid);
	*index = names->n_processes++;
	return 0;
}

int jit_names__add(struct jit_names *names, const struct jit_place *place)
{
	size_t process;
	int err;

	if (place->frame <= names->last_frame)
		return 0;
	err = get_process(names, place, &process);
	if (!err)
		err = array__reserve(&names->frames, &names->frames_room, names->n_frames + 1,
				     sizeof(*names->frames));
	if (err)
		return err;
	names->last_frame = place->frame;
	names->frames[names->n_frames++] = (struct frame){ place->frame, place->time_ns, process };
	names->processes[process].n_frames++;
	open_files(names, &names->processes[process]);
	return 0;
}

struct wanted {
	struct jit_query query;
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
	const struct jit_files *files;
	struct profile *profile;
	unsigned int n_late; /* number of files that took too long */
	__u64 work_ns;	     /* how long all of them took */
};

static int note_unread(const struct look_up *look_up, enum file_kind kind, int err)
{
	char path[64], why[256];

	snprintf(path, sizeof(path),
		 kind == FILE_DUMP ? "jit-%d.dump of process %u" : "/tmp/perf-%d.map of process %u",
		 look_up->files->own_pid, look_up->files->pid);
	if (err == -ECANCELED)
		snprintf(why, sizeof(why),
			 "it was not read: reading each of %d others took too long", MAX_LATE);
	else if (worker__has_failed(look_up->worker))
		snprintf(why, sizeof(why),
			 "it could not be read safely: the process that read it %s",
			 worker__problem(look_up->worker));
	else if (err == -ENOEXEC)
		snprintf(why, sizeof(why), "it is no jitdump of this machine's processor");
	else
		snprintf(why, sizeof(why), "it could not be read: %s", strerror(-err));
	return profile__add_unread(look_up->profile, path, why);
}

static int apply_answers(struct profile *profile, const struct wanted *wanted,
			 const struct jit_query *queries, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const char *name = queries[i].name;
		struct profile_line line = { 0 };

		if (!name)
			continue;
		err = profile__add_function(profile, name, name, name, &line.function);
		if (!err && queries[i].file) {
			line.line = queries[i].line;
			err = profile__add_file(profile, queries[i].file, &line.file);
		}
		if (!err)
			err = profile__set_frame_lines(profile, wanted[i].frame, &line, 1);
	}
	return err;
}

/* Asks the file @fd, and names the frames that it knows. */
static int ask(struct look_up *look_up, enum file_kind kind, int fd, const struct wanted *wanted,
	       size_t n)
{
	_cleanup_(free_ptr) struct jit_query *queries = calloc(n + 1, sizeof(*queries));
	struct wire_writer request = { 0 };
	struct wire_reader reply;
	__u64 begin_ns;
	int err;

	if (!queries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		queries[i] = wanted[i].query;
	put_queries(&request, kind, queries, n);
	begin_ns = clock__now_ns();
	err = look_up->n_late >= MAX_LATE || look_up->work_ns > MAX_WORK_NS
		      ? -ECANCELED
		      : worker__call(look_up->worker, &request, &fd, 1, &reply);
	look_up->work_ns += clock__now_ns() - begin_ns;
	wire__release(&request);
	look_up->n_late += err == -ETIMEDOUT && worker__has_failed(look_up->worker);
	if (!err && get_answers(&reply, queries, n))
		err = worker__refuse(look_up->worker);
	return err ? note_unread(look_up, kind, err)
		   : apply_answers(look_up->profile, wanted, queries, n);
}

/* Asks for the frames of one process that have no name yet. */
static int name_frames(struct look_up *look_up, enum file_kind kind, int fd,
		       const struct frame *frames, size_t n_frames)
{
	_cleanup_(free_ptr) struct wanted *wanted = calloc(n_frames + 1, sizeof(*wanted));
	size_t n = 0;

	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < n_frames; i++) {
		const struct profile_frame *frame = &look_up->profile->frames[frames[i].id - 1];

		if (!frame->n_lines && frame->offset)
			wanted[n++] = (struct wanted){
				.query.address = frame->offset - !frame->place,
				.query.time_ns = frames[i].time_ns,
				.frame = frame->id,
			};
	}
	if (!n)
		return 0;
	qsort(wanted, n, sizeof(*wanted), compare_wanted);
	return ask(look_up, kind, fd, wanted, n);
}

/* Dumps say more than maps, and are asked first. */
static int apply_process(struct look_up *look_up, const struct frame *frames, size_t n_frames)
{
	const struct jit_files *files = look_up->files;
	int err = 0;

	for (size_t i = 0; i < files->n_dumps && !err; i++)
		err = name_frames(look_up, FILE_DUMP, files->dumps[i], frames, n_frames);
	if (!err && files->map >= 0)
		err = name_frames(look_up, FILE_MAP, files->map, frames, n_frames);
	return err;
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
		.opens_nothing = true,
		.serve = serve,
	});
	struct look_up look_up = { .worker = worker, .profile = profile };
	int err = 0;

	if (!worker)
		return -ENOMEM;
	if (names->n_frames)
		qsort(names->frames, names->n_frames, sizeof(*names->frames), compare_frames);
	for (size_t first = 0, last; first < names->n_frames && !err; first = last) {
		struct process *process = &names->processes[names->frames[first].process];

		look_up.files = &process->files;
		last = first + 1;
		while (last < names->n_frames &&
		       names->frames[last].process == names->frames[first].process)
			last++;
		/* The process may have ended before the first try, or written its files late. */
		process->n_frames = 0;
		open_files(names, process);
		jit_files__open_last(&process->files, &names->begin);
		err = apply_process(&look_up, names->frames + first, last - first);
	}
	worker__free(worker);
	return err;
}
