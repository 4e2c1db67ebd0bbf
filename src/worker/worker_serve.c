// SPDX-License-Identifier: GPL-3.0-or-later
/* The worker's side: takes requests one after the other and answers them. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "confinement.h"
#include "worker_internal.h"

#define DEFAULT_MEMORY (1UL << 30)
/* Limits all requests of a worker together; the parent limits the time of each. */
#define CPU_SECONDS 3600

/* In the worker: it has a request. Outside of one the parent gives nothing, and its next packet is another request; but
 * the C library's free() opens a file of /proc when it gives back memory. */
static bool has_request;

/* Sends @packet and waits for the parent's GIVE, which replaces it. Without a parent there is nothing left to do. */
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

/* Receives one request. The parent is trusted; when it has gone, so does this process. */
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

/* The first packet says whether the worker is as it should be. */
void worker__serve(const struct worker_options *options, int socket, pid_t parent)
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
