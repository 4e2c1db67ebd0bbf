// SPDX-License-Identifier: GPL-3.0-or-later
/* Sends and receives packets, and descriptors with them, over a socket. */
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union fd_space {
	char bytes[CMSG_SPACE(PACKET_MAX_FDS * sizeof(int))];
	struct cmsghdr header; /* not used, but aligns the buffer */
};

int packet__send(int socket, const struct packet *packet, size_t size, const int *fds, size_t n_fds)
{
	struct iovec part = { (void *)packet, PACKET_HEADER + size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union fd_space space;
	ssize_t n;

	if (n_fds) {
		struct cmsghdr *header;

		memset(&space, 0, sizeof(space));
		message.msg_control = space.bytes;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *message, struct received *received)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		size_t size = header->cmsg_len - CMSG_LEN(0);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(received->fds, CMSG_DATA(header), size);
		received->n_fds = size / sizeof(int);
	}
}

void received__close(struct received *received)
{
	while (received->n_fds)
		close(received->fds[--received->n_fds]);
}

int packet__receive(int socket, struct packet *packet, struct received *received, int flags)
{
	struct iovec part = { packet, sizeof(*packet) };
	union fd_space space;
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space.bytes,
				  .msg_controllen = sizeof(space) };
	ssize_t n;

	received->n_fds = 0;
	do {
		n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	take_fds(&message, received);
	if (n < (ssize_t)PACKET_HEADER || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		received__close(received);
		return -EPROTO;
	}
	received->size = n - PACKET_HEADER;
	return 1;
}
