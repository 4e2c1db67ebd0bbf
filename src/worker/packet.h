/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Confined processes and their parent send each other bytes and descriptors over a socket (SOCK_SEQPACKET). */
#ifndef ALLOCPROF_PACKET_H
#define ALLOCPROF_PACKET_H

#include <limits.h>
#include <linux/types.h>
#include <stddef.h>

#define PACKET_MAX_FDS 8
/* Maximum number of an errno that a confined process may report. */
#define MAX_ERRNO 4095

#define PACKET_BYTES 32768

enum packet_kind {
	PACKET_REQUEST,	 /* bytes of a request */
	PACKET_REQUESTS, /* bytes of a request, of which more packets follow */
	PACKET_GIVE,	 /* a descriptor, a path, a status, or an error */
	PACKET_OPEN,	 /* a path */
	PACKET_NAME,	 /* a descriptor whose path is wanted */
	PACKET_STATUS,	 /* a descriptor whose status is wanted */
	PACKET_ASK,	 /* bytes for worker_options.answer */
	PACKET_NOTE,
	PACKET_PART, /* bytes of a reply */
	PACKET_DONE,
};

struct packet {
	__u32 kind;
	__s32 status; /* for GIVE and DONE: 0 or a negative errno */
	__u64 number; /* for NOTE */
	char bytes[PACKET_BYTES];
};

#define PACKET_HEADER offsetof(struct packet, bytes)

/* A packet that has been received. */
struct received {
	size_t size; /* size of packet.bytes that came */
	int fds[PACKET_MAX_FDS];
	size_t n_fds;
};

/* Sends a packet with @n_fds descriptors. Returns 0 or a negative errno. Async-signal-safe. */
int packet__send(int socket, const struct packet *packet, size_t size, const int *fds,
		 size_t n_fds);
/* Receives a packet and its descriptors, which the caller closes. Returns 1; 0 if the other side
 * has closed the socket; -EPROTO if the bytes are no packet; -EAGAIN if none has come to a socket
 * that does not block; or another negative errno. Async-signal-safe. */
int packet__receive(int socket, struct packet *packet, struct received *received, int flags);
void received__close(struct received *received);

#endif
