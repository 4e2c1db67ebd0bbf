/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting for several descriptors (epoll(7)). */
#ifndef ALLOCPROF_EPOLL_H
#define ALLOCPROF_EPOLL_H

#include <errno.h>
#include <sys/epoll.h>

/* Has @epoll_fd wait until @fd is readable, beside its other descriptors; the data of the event is
 * the number @fd. Returns 0 or a negative errno. */
static inline int epoll__watch(int epoll_fd, int fd)
{
	struct epoll_event interest = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &interest) ? -errno : 0;
}

#endif
