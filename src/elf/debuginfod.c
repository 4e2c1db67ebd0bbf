// SPDX-License-Identifier: GPL-3.0-or-later
#include "debuginfod.h"

#include <errno.h>
#include <linux/types.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "debuginfod_internal.h"
#include "packet.h"
#include "worker.h"

/* Fewer bytes within the timeout do not count as progress. If nothing arrives, the client's
 * progress callback counts its own steps, one a second. */
#define LEAST_BYTES 4096
#define POLL_MS	    100

struct debuginfod {
	struct debuginfod_options options;
	pid_t child;
	int fd;	 /* -1: the child has ended */
	int err; /* the reason, returned by all later calls */
	__u64 end_ms;
};

static void end_child(struct debuginfod *debuginfod, int err)
{
	close_fd(&debuginfod->fd);
	debuginfod->fd = -1;
	debuginfod->err = err;
	kill(debuginfod->child, SIGKILL);
	waitpid(debuginfod->child, NULL, 0);
}

static int start_child(struct debuginfod *debuginfod)
{
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	debuginfod->child = fork();
	if (!debuginfod->child)
		debuginfod__serve(ends[1], parent);
	close(ends[1]);
	debuginfod->fd = ends[0];
	if (debuginfod->child > 0)
		return 0;
	close_fd(&debuginfod->fd);
	return -EAGAIN;
}

bool debuginfod__has_servers(void)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	return servers && *servers;
}

struct debuginfod *debuginfod__new(const struct debuginfod_options *options)
{
	struct debuginfod *debuginfod;

	if (!debuginfod__has_servers())
		return NULL;
	debuginfod = calloc(1, sizeof(*debuginfod));
	if (!debuginfod)
		return NULL;
	debuginfod->options = *options;
	debuginfod->end_ms = clock__now_ns() / NS_PER_MS + options->total_ms;
	if (start_child(debuginfod)) {
		free(debuginfod);
		return NULL;
	}
	return debuginfod;
}

void debuginfod__free(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->fd >= 0)
		end_child(debuginfod, 0);
	free(debuginfod);
}

/* Progress of the current file. */
struct fetching {
	long done, total;    /* bytes; 0: unknown */
	long counted;	     /* value of done at the last progress */
	__u64 progressed_ms; /* time of the last progress */
};

static void note(struct fetching *fetching, const struct debuginfod_progress *progress)
{
	/* The client started over with another server. */
	if (progress->done < fetching->counted)
		fetching->counted = progress->done;
	if (progress->done - fetching->counted >= LEAST_BYTES) {
		fetching->counted = progress->done;
		fetching->progressed_ms = clock__now_ns() / NS_PER_MS;
	}
	/* Without a total size, done may not be in bytes. */
	fetching->total = progress->total > 0 ? progress->total : 0;
	fetching->done = fetching->total ? progress->done : 0;
}

/* 1 with a packet, 0 if none has come, or a negative errno. */
static int receive(const struct debuginfod *debuginfod, struct packet *packet,
		   struct received *received)
{
	struct pollfd polled = { .fd = debuginfod->fd, .events = POLLIN };
	int got;

	if (poll(&polled, 1, POLL_MS) <= 0)
		return 0;
	got = packet__receive(debuginfod->fd, packet, received, MSG_DONTWAIT);
	if (got == -EAGAIN)
		return 0;
	return got ? got : -ECHILD;
}

/* The client answers to servers: what it says may be anything. 1 with the result's descriptor or error in *@result, 0, or
 * a negative errno. */
static int handle(const struct packet *packet, struct received *received, struct fetching *fetching,
		  int *result)
{
	struct debuginfod_progress progress;

	if (packet->kind == PACKET_NOTE && received->size == sizeof(progress) && !received->n_fds) {
		memcpy(&progress, packet->bytes, sizeof(progress));
		if (progress.done < 0)
			return -ECHILD;
		note(fetching, &progress);
		return 0;
	}
	if (packet->kind == PACKET_GIVE && packet->status < 0 && packet->status >= -MAX_ERRNO &&
	    !received->n_fds)
		*result = packet->status;
	else if (packet->kind == PACKET_GIVE && !packet->status && received->n_fds == 1)
		*result = received->fds[0];
	else
		return -ECHILD;
	return 1;
}

/* 0 with a descriptor or an error of the client in *@result, or a negative errno if the child is to be killed. */
static int await(struct debuginfod *debuginfod, int *result)
{
	const struct debuginfod_options *options = &debuginfod->options;
	struct fetching fetching = { .progressed_ms = clock__now_ns() / NS_PER_MS };
	struct packet packet;

	for (;;) {
		struct received received = { 0 };
		int got = receive(debuginfod, &packet, &received);
		__u64 now = clock__now_ns() / NS_PER_MS;

		if (got > 0)
			got = handle(&packet, &received, &fetching, result);
		if (got == 1)
			return 0;
		received__close(&received);
		if (got < 0)
			return -ECHILD;
		if (now > debuginfod->end_ms)
			return -ETIME;
		if (now > fetching.progressed_ms + options->timeout_ms)
			return -ETIMEDOUT;
		if (options->progress(options->context, fetching.done, fetching.total))
			return -ECANCELED;
	}
}

int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id)
{
	size_t size = strlen(build_id);
	int result = debuginfod_cache__is_roots() ? debuginfod_cache__open(build_id) : -ENOENT;
	int err;

	if (result >= 0)
		return result;
	if (debuginfod->fd < 0)
		return debuginfod->err;
	if (!size || size >= MAX_REQUEST)
		return -EINVAL;
	err = send(debuginfod->fd, build_id, size, MSG_NOSIGNAL) < 0 ? -ECHILD
								     : await(debuginfod, &result);
	if (err)
		end_child(debuginfod, err);
	if (err || result < 0)
		return err ? err : result;
	return worker__only_elf(result);
}

bool debuginfod__is_ended(const struct debuginfod *debuginfod)
{
	return debuginfod->fd < 0;
}
