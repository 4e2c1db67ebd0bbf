// SPDX-License-Identifier: GPL-3.0-or-later
#include "parser.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"
#include "confinement.h"
#include "error.h"
#include "file.h"
#include "packet.h"
#include "worker.h"

/* Limit for one file, by the wall clock. The largest browser's file takes two seconds of an idle
 * processor. */
#define TIMEOUT_MS 20000
/* Limits of failures and of the time that they take: files that end or delay their workers must
 * not keep a recording busy for ever. */
#define MAX_FAILURES 64
#define MAX_LOST_MS  60000

struct parser {
	struct worker *worker;
	/* Worker of the last call, if the call needed a debug file; else NULL. */
	struct worker *opener;
	/* Process that started the worker; after a fork the child has to start its own. */
	pid_t owner;
	/* A file that users other than root may write to, and that this worker has begun to read. */
	bool has_read_others;
	dev_t others_device;
	ino_t others_inode;
	unsigned int n_failures;
	__u64 lost_ms; /* time spent in calls that failed, in milliseconds */
};

/* Runs in the worker: calls the function that the request names. The reply has the function's
 * status, its sentence if it failed, then its result. */
static int serve(struct worker_call *call)
{
	struct error error = { 0 };
	struct parser_task task = { .result = &call->reply, .error = &error };
	const void *run = wire__get_bytes(&call->request, sizeof(parser_fn));
	parser_fn fn;
	int err;

	task.path = wire__get_string(&call->request, PATH_MAX + 1);
	if (!run || !task.path || call->n_fds != 1)
		return -EINVAL;
	memcpy(&fn, run, sizeof(fn));
	task.fd = call->fds[0];
	task.parameters = call->request;
	wire__put_u32(&call->reply, 0);
	err = fn(&task);
	if (err) {
		call->reply.size = 0;
		wire__put_u32(&call->reply, -err);
		wire__put_string(&call->reply, error.text);
	}
	return 0;
}

static struct worker *new_worker(bool opens_nothing)
{
	return worker__new(&(struct worker_options){
		.name = "allocprof-parse",
		.serve = serve,
		.opens_nothing = opens_nothing,
		.timeout_ms = TIMEOUT_MS,
	});
}

int parser__new(struct parser **out, struct error *error)
{
	struct parser *parser = calloc(1, sizeof(*parser));
	int err = -ENOMEM;

	if (!parser)
		return -ENOMEM;
	parser->owner = getpid();
	parser->worker = new_worker(true);
	if (parser->worker)
		err = worker__start(parser->worker);
	/* -EPERM would mean that the kernel refuses uprobes, in which case another engine is
	 * chosen; but each engine needs the parser. */
	if (err == -EPERM)
		err = -ECHILD;
	/* If a file ended or delayed the worker, that is no reason to give up: the next file gets
	 * a new worker, and the message names the file. */
	else if (err == -ECHILD || err == -ETIMEDOUT)
		err = 0;
	if (err) {
		err = error__set(
			error, err,
			"cannot start the process that reads files of programs: it %s%s",
			parser->worker && worker__problem(parser->worker)[0]
				? worker__problem(parser->worker)
				: strerror(-err),
			confinement__is_filtered()
				? "; a filter of system calls is in place, which has to let "
				  "seccomp(2) pass, as by SystemCallFilter=@system-service "
				  "seccomp of systemd: allocprof confines that process"
				: "");
		parser__free(parser);
		return err;
	}
	*out = parser;
	return 0;
}

/* Forgets the worker after a fork: it belongs to the parent, and the child starts its own. */
static void forget_parents(struct parser *parser)
{
	if (parser->owner == getpid())
		return;
	parser->worker = NULL;
	parser->opener = NULL;
	parser->owner = getpid();
}

void parser__free(struct parser *parser)
{
	if (!parser)
		return;
	forget_parents(parser);
	worker__free(parser->worker);
	worker__free(parser->opener);
	free(parser);
}

/* Returns whether only root can have written the file. Users can mount disk images and file
 * systems of their own (FUSE), which may report anything about a file; these mounts always have
 * the option nosuid. */
static bool is_roots(int fd, const struct stat *st)
{
	struct statvfs mount;

	return file_owner__is_only_root(st) && !fstatvfs(fd, &mount) && !(mount.f_flag & ST_NOSUID);
}

static int prepare(struct parser *parser, int fd, bool needs_debug_file)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	forget_parents(parser);
	worker__free(parser->opener);
	parser->opener = needs_debug_file ? new_worker(false) : NULL;
	if (needs_debug_file)
		return parser->opener ? 0 : -ENOMEM;
	if (parser->has_read_others &&
	    (parser->others_device != st.st_dev || parser->others_inode != st.st_ino)) {
		worker__free(parser->worker);
		parser->worker = NULL;
	}
	if (!parser->worker) {
		parser->worker = new_worker(true);
		parser->has_read_others = false;
	}
	/* A file that only root can write does not taint the worker: root needs no worker to get
	 * at other processes. */
	if (!is_roots(fd, &st)) {
		parser->has_read_others = true;
		parser->others_device = st.st_dev;
		parser->others_inode = st.st_ino;
	}
	return parser->worker ? 0 : -ENOMEM;
}

/* Returns the worker of the last call. */
static struct worker *last_worker(const struct parser *parser)
{
	return parser->opener ? parser->opener : parser->worker;
}

static int say_failure(struct parser *parser, const char *name, int err, struct error *error)
{
	const char *problem = worker__problem(last_worker(parser));

	parser->n_failures++;
	return error__set(error, -ECHILD,
			  "%s could not be read safely: the process that read it %s", name,
			  *problem ? problem : strerror(-err));
}

int parser__refuse(struct parser *parser, const char *name, struct error *error)
{
	return say_failure(parser, name, worker__refuse(last_worker(parser)), error);
}

/* Reads the status that parser_fn returned from the reply, and sets *@error to its sentence.
 * Returns the status. */
static int take_status(struct parser *parser, const char *name, struct wire_reader *result,
		       struct error *error)
{
	int status = wire__get_u32(result);
	const char *text = NULL;

	if (status > 0 && status <= MAX_ERRNO)
		text = wire__get_string(result, sizeof(error->text));
	if (result->is_bad || (status && (!text || !wire__is_read(result))))
		return parser__refuse(parser, name, error);
	if (!status)
		return 0;
	if (*text)
		return error__set(error, -status, "%s", text);
	return error__set(error, -status, "cannot read %s: %s", name, strerror(status));
}

int parser__call(struct parser *parser, const struct parser_call *call, struct wire_reader *result,
		 struct error *error)
{
	const char *name = call->name ? call->name : call->path;
	__u64 begin_ms = clock__now_ns() / NS_PER_MS;
	struct wire_writer request = { 0 };
	int err = prepare(parser, call->fd, call->needs_debug_file);

	if (err)
		return err;
	if (parser->n_failures >= MAX_FAILURES || parser->lost_ms >= MAX_LOST_MS)
		return error__set(error, -ECHILD,
				  "%s is not read: %u other files could not be read safely", name,
				  parser->n_failures);
	wire__put_bytes(&request, &call->run, sizeof(call->run));
	wire__put_string(&request, call->path);
	if (call->parameters)
		wire__put_bytes(&request, call->parameters->bytes, call->parameters->size);
	err = worker__call(last_worker(parser), &request, &call->fd, 1, result);
	wire__release(&request);
	if (err) {
		parser->lost_ms += clock__now_ns() / NS_PER_MS - begin_ms;
		return say_failure(parser, name, err, error);
	}
	return take_status(parser, name, result, error);
}

int parser__call_struct(struct parser *parser, const struct parser_call *call,
			const struct wire_struct *type, void *object, const void *context,
			struct error *error)
{
	struct wire_reader result;
	int err = parser__call(parser, call, &result, error);

	if (err)
		return err;
	err = wire__get_struct(&result, type, object, context);
	if (err == -ENOMEM || (!err && wire__is_read(&result)))
		return err;
	return parser__refuse(parser, call->name ? call->name : call->path, error);
}
