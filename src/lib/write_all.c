// SPDX-License-Identifier: GPL-3.0-or-later
#include "write_all.h"

#include <errno.h>
#include <unistd.h>

int fd__write_all(int fd, const void *from, size_t size)
{
	const char *at = from;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= n;
	}
	return 0;
}

int fd__write_all_at(int fd, const void *from, size_t size, __u64 offset)
{
	const char *at = from;

	while (size) {
		ssize_t n = pwrite(fd, at, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= n;
		offset += n;
	}
	return 0;
}
