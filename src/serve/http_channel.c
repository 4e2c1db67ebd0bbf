// SPDX-License-Identifier: GPL-3.0-or-later
/* Sends and receives messages, with descriptors. */
#include "http_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "cleanup.h"

int http_channel__send(int channel, const struct http_message *message, int fd)
{
	char room[CMSG_SPACE(sizeof(fd))] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { (void *)message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *rights;

	if (fd >= 0) {
		header.msg_control = room;
		header.msg_controllen = sizeof(room);
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	}
	return sendmsg(channel, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int http_channel__receive(int channel, struct http_message *message, int *fd)
{
	char room[CMSG_SPACE(sizeof(*fd))] __attribute__((aligned(8)));
	struct iovec part = { message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = fd ? room : NULL,
				 .msg_controllen = fd ? sizeof(room) : 0 };
	ssize_t len = recvmsg(channel, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *rights;

	if (fd)
		*fd = -1;
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!len)
		return -EPIPE;
	rights = fd ? CMSG_FIRSTHDR(&header) : NULL;
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
	    rights->cmsg_len == CMSG_LEN(sizeof(*fd)))
		memcpy(fd, CMSG_DATA(rights), sizeof(*fd));
	if (len != sizeof(*message)) {
		if (fd) {
			close_fd(fd);
			*fd = -1;
		}
		return -EPROTO;
	}
	message->text[sizeof(message->text) - 1] = '\0';
	return 1;
}
