/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker and its parent exchange packets over one socket (SOCK_SEQPACKET):
 *
 *	parent: REQUEST..., the last one flagged	worker: PART..., DONE
 *	in between, any number of times:	worker: OPEN, NAME or ASK, and waits	parent: GIVE
 *						worker: NOTE
 */
#ifndef ALLOCPROF_WORKER_INTERNAL_H
#define ALLOCPROF_WORKER_INTERNAL_H

#include <limits.h>
#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

#include "worker.h"

#define PACKET_BYTES 32768

enum packet_kind {
	PACKET_REQUEST,	 /* bytes of a request */
	PACKET_REQUESTS, /* the same, and more of it follows */
	PACKET_GIVE,	 /* a descriptor, a path, or an error */
	PACKET_OPEN,	 /* a path */
	PACKET_NAME,	 /* a descriptor, whose path is wanted */
	PACKET_ASK,	 /* bytes for worker_options.answer */
	PACKET_NOTE,
	PACKET_PART, /* bytes of a reply */
	PACKET_DONE,
};

struct packet {
	__u32 kind;
	__s32 status; /* of GIVE and DONE: 0 or a negative errno */
	__u64 number; /* of NOTE */
	char bytes[PACKET_BYTES];
};

#define PACKET_HEADER offsetof(struct packet, bytes)

/* A packet that has been received. */
struct received {
	size_t size; /* of packet.bytes */
	int fds[WORKER_MAX_FDS];
	size_t n_fds;
};

/* Async-signal-safe. 0 or a negative errno. */
int packet__send(int socket, const struct packet *packet, size_t size, const int *fds,
		 size_t n_fds);
/* Likewise. 1 with the packet and its descriptors, which the caller closes; 0 at the end, or a negative errno: -EPROTO
 * if it is none, -EAGAIN if none has come to a socket that does not block. */
int packet__receive(int socket, struct packet *packet, struct received *received, int flags);
void received__close(struct received *received);

/* Has the system calls by which libraries open files ask the parent, through the signal SIGSYS. */
void worker_trap__set(void);

/* A descriptor of the file at @path from the parent, or a negative errno. Async-signal-safe. */
int worker_request__open(const char *path);
/* The length of the path of @fd, at most @size, without NUL; or a negative errno. Async-signal-safe. */
ssize_t worker_request__name(int fd, char *path, size_t size);

/* Runs in the forked child, and does not return. */
void worker__serve(const struct worker_options *options, int socket, pid_t parent)
	__attribute__((noreturn));

#endif
