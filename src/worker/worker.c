// SPDX-License-Identifier: GPL-3.0-or-later
#include "worker.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "confinement.h"
#include "file.h"
#include "packet.h"
#include "worker_internal.h"

/* The worker's side: takes requests one after the other and answers them. */

#define DEFAULT_MEMORY (1UL << 30)
/* Limit of processor time, in seconds, of all requests of a worker together; the parent limits the
 * time of each. */
#define CPU_SECONDS 3600

/* In the worker: a request is being handled. At other times the parent answers nothing, and its
 * next packet is another request; but the C library's free() may open a file of /proc even then,
 * when it gives memory back. */
static bool has_request;

/* Sends @packet and waits for the parent's GIVE, which is written over @packet. Ends the process
 * if the parent is gone. */
static int ask(struct packet *packet, size_t size, const int *fd, struct received *received)
{
	received->n_fds = 0;
	if (!has_request)
		return -EACCES;
	if (packet__send(CONFINED_FD, packet, size, fd, fd ? 1 : 0) ||
	    packet__receive(CONFINED_FD, packet, received, 0) != 1 || packet->kind != PACKET_GIVE)
		_exit(1);
	return packet->status;
}

static int take_fd(int err, struct received *received)
{
	if (!err && received->n_fds == 1)
		return received->fds[0];
	received__close(received);
	return err ? err : -EPROTO;
}

int worker_request__open(const char *path)
{
	struct packet packet = { .kind = PACKET_OPEN };
	size_t size = strnlen(path, PATH_MAX);
	struct received received;

	if (size == PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(packet.bytes, path, size + 1);
	return take_fd(ask(&packet, size + 1, NULL, &received), &received);
}

ssize_t worker_request__name(int fd, char *path, size_t size)
{
	struct packet packet = { .kind = PACKET_NAME };
	struct received received;
	int err = ask(&packet, 0, &fd, &received);

	received__close(&received);
	if (err)
		return err;
	if (size > received.size)
		size = received.size;
	memcpy(path, packet.bytes, size);
	return size;
}

int worker_request__status(int fd, struct stat *out)
{
	struct packet packet = { .kind = PACKET_STATUS };
	struct received received;
	int err = ask(&packet, 0, &fd, &received);

	received__close(&received);
	if (err)
		return err;
	if (received.size != sizeof(*out))
		return -EPROTO;
	memcpy(out, packet.bytes, sizeof(*out));
	return 0;
}

int worker_call__ask(const struct wire_writer *question)
{
	struct packet packet = { .kind = PACKET_ASK };
	struct received received;

	if (question->has_failed)
		return -ENOMEM;
	if (question->size > PACKET_BYTES)
		return -EMSGSIZE;
	memcpy(packet.bytes, question->bytes, question->size);
	return take_fd(ask(&packet, question->size, NULL, &received), &received);
}

void worker_call__note(__u64 number)
{
	const struct packet packet = { .kind = PACKET_NOTE, .number = number };

	if (packet__send(CONFINED_FD, &packet, 0, NULL, 0))
		_exit(1);
}

static void reply(struct worker_call *call, int err)
{
	struct packet packet = { .kind = PACKET_PART };

	if (!err && call->reply.has_failed)
		err = -ENOMEM;
	for (size_t at = 0, size; at < call->reply.size && !err; at += size) {
		size = call->reply.size - at;
		size = size < PACKET_BYTES ? size : PACKET_BYTES;
		memcpy(packet.bytes, call->reply.bytes + at, size);
		if (packet__send(CONFINED_FD, &packet, size, NULL, 0))
			_exit(1);
	}
	has_request = false;
	packet.kind = PACKET_DONE;
	packet.status = err;
	if (packet__send(CONFINED_FD, &packet, 0, NULL, 0))
		_exit(1);
}

/* Receives one request. The parent is trusted. If the parent is gone, the process ends. */
static void take_request(struct wire_writer *bytes, int *fds, size_t *n_fds)
{
	struct packet packet;

	*n_fds = 0;
	do {
		struct received received;

		if (packet__receive(CONFINED_FD, &packet, &received, 0) != 1)
			_exit(0);
		wire__put_bytes(bytes, packet.bytes, received.size);
		if (received.n_fds) {
			*n_fds = received.n_fds;
			memcpy(fds, received.fds, received.n_fds * sizeof(*fds));
		}
	} while (packet.kind == PACKET_REQUESTS);
}

static void serve_one(const struct worker_options *options)
{
	struct worker_call call = { .context = options->context };
	struct wire_writer bytes = { 0 };
	int fds[PACKET_MAX_FDS], err;

	take_request(&bytes, fds, &call.n_fds);
	has_request = true;
	call.request = wire__reader(bytes.bytes, bytes.size);
	call.fds = fds;
	err = bytes.has_failed ? -ENOMEM : options->serve(&call);
	reply(&call, err);
	for (size_t i = 0; i < call.n_fds; i++)
		close(fds[i]);
	wire__release(&call.reply);
	wire__release(&bytes);
}

/* The first packet tells the parent whether the worker could confine itself. */
static void __attribute__((noreturn))
worker__serve(const struct worker_options *options, int socket, pid_t parent)
{
	const struct confinement confinement = {
		.kind = CONFINE_PARSER,
		.name = options->name,
		.parent = parent,
		.fd = socket,
		.memory_bytes = options->memory_bytes ?: DEFAULT_MEMORY,
		.cpu_seconds = CPU_SECONDS,
	};
	struct packet packet = { .kind = PACKET_DONE };

	packet.status = confinement__enter(&confinement);
	if (!packet.status && options->prepare)
		options->prepare(options->context);
	if (!packet.status)
		packet.status = confinement__close(CONFINE_PARSER);
	if (packet__send(CONFINED_FD, &packet, 0, NULL, 0) || packet.status)
		_exit(1);
	for (;;)
		serve_one(options);
}

#define DEFAULT_TIMEOUT_MS 60000
#define DEFAULT_MAX_REPLY  (256UL << 20)
/* Time limit for steps that are quick once the worker gets a processor: to confine itself, and to
 * receive what is sent. */
#define REACTION_MS 10000
/* Maximum number of questions that a worker may ask during one request; a module may have some
 * thousand .dwo files. */
#define MAX_ASKED 100000
/* Interval at which a caller that waits for a worker looks at it; and the length of a pause after
 * which the time does not count as the worker's. */
#define TICK_MS	     100
#define ATTENTIVE_MS 1000
/* Maximum number of packets that are handled before others have their turn. */
#define MAX_AT_ONCE 256

struct worker {
	struct worker_options options;
	pid_t pid; /* 0: the worker does not run */
	int fd;
	bool is_busy, has_failed;
	__u64 deadline_ms, seen_ms; /* seen_ms: time when the worker's packets were last read */
	unsigned int n_asked;
	struct wire_writer reply;
	char problem[128];
};

struct worker *worker__new(const struct worker_options *options)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return NULL;
	worker->options = *options;
	if (!worker->options.timeout_ms)
		worker->options.timeout_ms = DEFAULT_TIMEOUT_MS;
	if (!worker->options.max_reply)
		worker->options.max_reply = DEFAULT_MAX_REPLY;
	worker->fd = -1;
	return worker;
}

/* Ends the worker's process if it still runs. Returns the process's wait status, or 0 if there was
 * none. */
static int end(struct worker *worker)
{
	int status = 0;

	worker->is_busy = false;
	if (!worker->pid)
		return status;
	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, &status, 0);
	worker->pid = 0;
	close(worker->fd);
	worker->fd = -1;
	return status;
}

void worker__free(struct worker *worker)
{
	if (!worker)
		return;
	end(worker);
	wire__release(&worker->reply);
	free(worker);
}

static void explain(struct worker *worker, int err, int status)
{
	char *text = worker->problem;
	size_t size = sizeof(worker->problem);

	if (err == -ETIMEDOUT)
		snprintf(text, size, "took longer than %g s", worker->options.timeout_ms / 1e3);
	else if (err == -EPROTO)
		snprintf(text, size, "gave no valid answer");
	else if (err == -EMSGSIZE)
		snprintf(text, size, "answered with more than %zu MiB",
			 worker->options.max_reply >> 20);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		snprintf(text, size, "made a system call that is not allowed");
	else if (WIFSIGNALED(status))
		snprintf(text, size, "was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "ended");
}

/* Ends the worker's process because of @err, which it returns. */
static int fail(struct worker *worker, int err)
{
	int status = end(worker);

	worker->has_failed = true;
	explain(worker, err, status);
	return err;
}

int worker__refuse(struct worker *worker)
{
	return fail(worker, -EPROTO);
}

bool worker__has_failed(const struct worker *worker)
{
	return worker->has_failed;
}

const char *worker__problem(const struct worker *worker)
{
	return worker->problem;
}

int worker__fd(const struct worker *worker)
{
	return worker->fd;
}

/* Limits how long the socket may block a process of allocprof. */
static int set_timeout(int fd)
{
	const struct timeval limit = { REACTION_MS / 1000, 0 };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
			       setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit))
		       ? -errno
		       : 0;
}

/* Ends a worker that does not react: its process was stopped, or gets no processor. */
static int fail_inert(struct worker *worker)
{
	fail(worker, -ETIMEDOUT);
	snprintf(worker->problem, sizeof(worker->problem), "did not react for %d s",
		 REACTION_MS / 1000);
	return -ETIMEDOUT;
}

static int await_confinement(struct worker *worker)
{
	struct received received;
	struct packet packet;
	int got = packet__receive(worker->fd, &packet, &received, 0);

	if (got == -EAGAIN)
		return fail_inert(worker);
	if (got <= 0)
		return fail(worker, -ECHILD);
	received__close(&received);
	if (packet.kind == PACKET_DONE && !packet.status)
		return 0;
	fail(worker, -EPERM);
	snprintf(worker->problem, sizeof(worker->problem), "could not be confined: %s",
		 strerror(-packet.status));
	return -EPERM;
}

int worker__start(struct worker *worker)
{
	pid_t parent = getpid();
	int ends[2], err;

	if (worker->pid)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	err = set_timeout(ends[0]);
	worker->pid = err ? -1 : fork();
	if (!worker->pid)
		worker__serve(&worker->options, ends[1], parent);
	if (!err && worker->pid < 0)
		err = -errno;
	close(ends[1]);
	worker->fd = ends[0];
	if (err) {
		worker->pid = 0;
		close(ends[0]);
		worker->fd = -1;
		return err;
	}
	return await_confinement(worker);
}

int worker__send(struct worker *worker, const struct wire_writer *request, const int *fds,
		 size_t n_fds)
{
	struct packet packet;
	size_t at = 0, size;
	int err;

	if (request->has_failed)
		return -ENOMEM;
	if (n_fds > PACKET_MAX_FDS || worker->is_busy)
		return -EINVAL;
	err = worker__start(worker);
	if (err)
		return err;
	worker->is_busy = true;
	worker->has_failed = false;
	worker->n_asked = 0;
	worker->reply.size = 0;
	worker->seen_ms = clock__now_ns() / NS_PER_MS;
	worker->deadline_ms = worker->seen_ms + worker->options.timeout_ms;
	do {
		size = request->size - at;
		packet.kind = size > PACKET_BYTES ? PACKET_REQUESTS : PACKET_REQUEST;
		size = size < PACKET_BYTES ? size : PACKET_BYTES;
		if (size)
			memcpy(packet.bytes, request->bytes + at, size);
		err = packet__send(worker->fd, &packet, size, fds, at ? 0 : n_fds);
		if (err == -EAGAIN)
			return fail_inert(worker);
		/* worker__receive() reports that the worker has ended. */
		if (err)
			break;
		at += size;
	} while (packet.kind == PACKET_REQUESTS);
	return 0;
}

int worker__only_elf(int fd)
{
	char magic[SELFMAG];
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	    memcmp(magic, ELFMAG, sizeof(magic)) == 0)
		return fd;
	close(fd);
	return -ENOEXEC;
}

int worker__open_file(const char *path)
{
	int fd = regular_file__open(path);

	return fd < 0 ? fd : worker__only_elf(fd);
}

/* Sends @fd, which the function closes, or the error that @fd stands for if it is negative. */
static int give(struct worker *worker, int fd)
{
	struct packet packet = { .kind = PACKET_GIVE, .status = fd < 0 ? fd : 0 };
	int err = packet__send(worker->fd, &packet, 0, &fd, fd >= 0);

	close_fd(&fd);
	return err ? -ECHILD : 0;
}

static int give_name(struct worker *worker, const struct received *received)
{
	struct packet packet = { .kind = PACKET_GIVE };
	char link[64];
	ssize_t size = -1;

	if (received->n_fds != 1)
		return -EPROTO;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", received->fds[0]);
	size = readlink(link, packet.bytes, PATH_MAX);
	if (size < 0)
		packet.status = -errno;
	return packet__send(worker->fd, &packet, size < 0 ? 0 : size, NULL, 0) ? -ECHILD : 0;
}

static int give_status(struct worker *worker, const struct received *received)
{
	struct packet packet = { .kind = PACKET_GIVE };
	struct stat st;

	if (received->n_fds != 1)
		return -EPROTO;
	if (fstat(received->fds[0], &st))
		packet.status = -errno;
	else
		memcpy(packet.bytes, &st, sizeof(st));
	return packet__send(worker->fd, &packet, packet.status ? 0 : sizeof(st), NULL, 0) ? -ECHILD
											  : 0;
}

static int give_answer(struct worker *worker, const struct packet *packet, size_t size)
{
	struct wire_reader question = wire__reader(packet->bytes, size);

	if (!worker->options.answer)
		return -EPROTO;
	return give(worker, worker->options.answer(worker->options.context, &question));
}

static int take_part(struct worker *worker, const struct packet *packet, size_t size)
{
	if (worker->reply.size + size > worker->options.max_reply)
		return -EMSGSIZE;
	wire__put_bytes(&worker->reply, packet->bytes, size);
	return worker->reply.has_failed ? -ENOMEM : 0;
}

/* Handles a packet. Returns 1 if the request is done, with its status. */
static int handle(struct worker *worker, const struct packet *packet,
		  const struct received *received, int *status)
{
	switch (packet->kind) {
	case PACKET_OPEN:
		if (!received->size || memchr(packet->bytes, '\0', received->size) !=
					       packet->bytes + received->size - 1)
			return -EPROTO;
		return ++worker->n_asked > MAX_ASKED
			       ? -EPROTO
			       : give(worker, worker->options.opens_nothing
						      ? -EACCES
						      : worker__open_file(packet->bytes));
	case PACKET_NAME:
		return ++worker->n_asked > MAX_ASKED ? -EPROTO : give_name(worker, received);
	case PACKET_STATUS:
		return ++worker->n_asked > MAX_ASKED ? -EPROTO : give_status(worker, received);
	case PACKET_ASK:
		return ++worker->n_asked > MAX_ASKED ? -EPROTO
						     : give_answer(worker, packet, received->size);
	case PACKET_NOTE:
		if (worker->options.note)
			worker->options.note(worker->options.context, packet->number);
		return 0;
	case PACKET_PART:
		return take_part(worker, packet, received->size);
	case PACKET_DONE:
		*status = packet->status;
		return packet->status <= 0 && packet->status != -EAGAIN ? 1 : -EPROTO;
	}
	return -EPROTO;
}

static int finish(struct worker *worker, int status, struct wire_reader *reply)
{
	worker->is_busy = false;
	*reply = wire__reader(worker->reply.bytes, status ? 0 : worker->reply.size);
	return status;
}

/* Returns whether the request took too long. Time while nobody read the worker's packets does not
 * count. */
static bool is_late(struct worker *worker)
{
	__u64 now_ms = clock__now_ns() / NS_PER_MS, passed_ms = now_ms - worker->seen_ms;

	worker->seen_ms = now_ms;
	if (passed_ms > ATTENTIVE_MS)
		worker->deadline_ms += passed_ms;
	return now_ms >= worker->deadline_ms;
}

int worker__receive(struct worker *worker, struct wire_reader *reply)
{
	if (!worker->is_busy)
		return -EINVAL;
	for (int i = 0; i < MAX_AT_ONCE; i++) {
		struct received received;
		struct packet packet;
		int status = 0, got = packet__receive(worker->fd, &packet, &received, MSG_DONTWAIT);

		if (got == -EAGAIN)
			break;
		if (got <= 0)
			return fail(worker, got == -EPROTO ? got : -ECHILD);
		got = handle(worker, &packet, &received, &status);
		received__close(&received);
		if (got == 1)
			return finish(worker, status, reply);
		if (got)
			return fail(worker, got);
	}
	return is_late(worker) ? fail(worker, -ETIMEDOUT) : -EAGAIN;
}

int worker__call(struct worker *worker, const struct wire_writer *request, const int *fds,
		 size_t n_fds, struct wire_reader *reply)
{
	int err = worker__send(worker, request, fds, n_fds);

	if (err)
		return err;
	while ((err = worker__receive(worker, reply)) == -EAGAIN) {
		struct pollfd polled = { .fd = worker->fd, .events = POLLIN };

		poll(&polled, 1, TICK_MS);
	}
	return err;
}
