// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump_unwind.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfi_frames.h"
#include "dump_unwind_internal.h"
#include "packet.h"
#include "process_maps.h"
#include "worker.h"

/* Time limit: one stack dump takes a millisecond, and the first one through a large library a
 * second. Others wait meanwhile. */
#define TIMEOUT_MS   5000
#define MEMORY_BYTES (1UL << 30)
/* How many failures are tolerated, so that processes whose files crash or delay the worker do not
 * keep a recording busy for ever. */
#define MAX_FAILURES 8

struct dump_unwinder {
	const struct process_maps *maps;
	dump_find_file_fn find_file;
	void *context;
	struct dump_server server; /* state with which a worker begins */
	/* Worker for one process only, whose files may take it over; or NULL. */
	struct worker *worker;
	pid_t owner;
	__u32 pid;
	__u64 version;	 /* version of the process's mappings that the worker knows */
	bool has_failed; /* unwinding has failed with these mappings */
	int n_failures;
};

struct dump_unwinder *dump_unwinder__new(const struct process_maps *maps,
					 dump_find_file_fn find_file, void *context)
{
	struct dump_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->maps = maps;
	unwinder->find_file = find_file;
	unwinder->context = context;
	return unwinder;
}

/* Ends the worker, unless a fork has made this a copy: then it stays the parent's. */
static void end_worker(struct dump_unwinder *unwinder)
{
	if (unwinder->worker && unwinder->owner == getpid())
		worker__free(unwinder->worker);
	unwinder->worker = NULL;
}

void dump_unwinder__free(struct dump_unwinder *unwinder)
{
	if (!unwinder)
		return;
	end_worker(unwinder);
	free(unwinder);
}

static int call(struct dump_unwinder *unwinder, struct wire_writer *request, const int *fds,
		size_t n_fds, struct wire_reader *reply)
{
	int err = worker__call(unwinder->worker, request, fds, n_fds, reply);

	if (err && worker__has_failed(unwinder->worker)) {
		unwinder->has_failed = true;
		unwinder->n_failures++;
	}
	wire__release(request);
	return err;
}

struct files {
	struct dump_unwinder *unwinder;
	struct wire_writer request;
	int fds[PACKET_MAX_FDS];
	size_t n;
	int err;
};

static void send_files(struct files *files)
{
	struct wire_reader reply;

	if (files->n && !files->err)
		files->err = call(files->unwinder, &files->request, files->fds, files->n, &reply);
	files->n = 0;
}

/* Adds the file of one mapping, unless it cannot be opened. */
static void add_mapping(const struct code_mapping *mapping, void *context)
{
	struct files *files = context;
	struct dump_unwinder *unwinder = files->unwinder;
	__u64 bias;
	int fd = unwinder->find_file(mapping, unwinder->pid, &bias, unwinder->context);

	if (fd < 0 || files->err)
		return;
	if (!files->n)
		wire__put_u32(&files->request, DUMP_FILES);
	files->fds[files->n++] = fd;
	wire__put_u64(&files->request, bias);
	wire__put_u64(&files->request, mapping->start);
	wire__put_u64(&files->request, mapping->end);
	wire__put_string(&files->request,
			 mapping->path && strlen(mapping->path) < PATH_MAX ? mapping->path : NULL);
	if (files->n == PACKET_MAX_FDS)
		send_files(files);
}

static int begin(struct dump_unwinder *unwinder, __u64 time_ns)
{
	struct files files = { .unwinder = unwinder };
	struct wire_writer request = { 0 };
	struct wire_reader reply;
	int err;

	wire__put_u32(&request, DUMP_BEGIN);
	err = call(unwinder, &request, NULL, 0, &reply);
	if (err)
		return err;
	process_maps__for_each(unwinder->maps, unwinder->pid, time_ns, add_mapping, &files);
	send_files(&files);
	wire__release(&files.request);
	return files.err;
}

/* Sends the worker the process's mappings at @time_ns, if it does not know them. */
static int enter_process(struct dump_unwinder *unwinder, __u32 pid, __u64 time_ns)
{
	__u64 version = process_maps__version(unwinder->maps, pid, time_ns);
	bool is_same = unwinder->pid == pid && unwinder->owner == getpid();

	if (unwinder->n_failures == MAX_FAILURES)
		return -ECHILD;
	if (is_same && unwinder->version == version && (unwinder->worker || unwinder->has_failed))
		return unwinder->has_failed ? -ECHILD : 0;
	if (!is_same)
		end_worker(unwinder);
	unwinder->owner = getpid();
	unwinder->pid = pid;
	unwinder->version = version;
	unwinder->has_failed = false;
	if (!unwinder->worker)
		unwinder->worker = worker__new(&(struct worker_options){
			.name = "allocprof-stack",
			.serve = dump_server__serve,
			.context = &unwinder->server,
			.opens_nothing = true,
			.timeout_ms = TIMEOUT_MS,
			.memory_bytes = MEMORY_BYTES,
		});
	return unwinder->worker ? begin(unwinder, time_ns) : -ENOMEM;
}

int dump_unwind__take(struct wire_reader *reply, struct ap_frame *frames, size_t max_frames,
		      enum ap_stack_end *end)
{
	__u32 reason = wire__get_u32(reply);
	size_t n = wire__get_count(reply, sizeof(*frames));
	const void *bytes = wire__get_bytes(reply, n * sizeof(*frames));

	if (!bytes || !wire__is_read(reply) || n > max_frames || reason >= AP_STACK_ENDS)
		return -EPROTO;
	memcpy(frames, bytes, n * sizeof(*frames));
	for (size_t i = 0; i < n; i++)
		if (frames[i].module || frames[i].flags & ~AP_FRAME_INTERRUPTED)
			return -EPROTO;
	*end = reason;
	return n;
}

static int ask(struct dump_unwinder *unwinder, const struct ap_dump_record *dump,
	       struct ap_frame *frames, size_t max_frames, enum ap_stack_end *end)
{
	struct dump_question question = {
		.n_bytes = dump->n_bytes,
		.end = dump->end,
		.is_in_caller = dump->is_in_caller,
		.max_frames = max_frames,
	};
	struct wire_writer request = { 0 };
	struct wire_reader reply;
	int err;

	memcpy(question.registers, dump->registers, sizeof(question.registers));
	wire__put_u32(&request, DUMP_UNWIND);
	wire__put_bytes(&request, &question, sizeof(question));
	wire__put_bytes(&request, dump + 1, dump->n_bytes);
	err = call(unwinder, &request, NULL, 0, &reply);
	if (!err)
		err = dump_unwind__take(&reply, frames, max_frames, end);
	if (err == -EPROTO && !worker__has_failed(unwinder->worker)) {
		worker__refuse(unwinder->worker);
		unwinder->has_failed = true;
		unwinder->n_failures++;
	}
	return err;
}

int dump_unwinder__unwind(struct dump_unwinder *unwinder, const struct ap_dump_record *dump,
			  __u32 pid, struct ap_frame *frames, size_t max_frames,
			  enum ap_stack_end *end)
{
	int err = enter_process(unwinder, pid, dump->time_ns), n = 0;

	if (!err)
		n = ask(unwinder, dump, frames, max_frames, end);
	if (!err && n >= 0)
		return n;
	/* The stack has only the caller's frame, as if there were no rules for the first step. */
	*end = dump->end;
	if (!dump->is_in_caller || !max_frames)
		return 0;
	frames[0] = (struct ap_frame){ .offset = dump->registers[dwarf_registers.pc] };
	return 1;
}
