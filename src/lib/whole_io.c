// SPDX-License-Identifier: GPL-3.0-or-later
#include "whole_io.h"

#include <errno.h>
#include <unistd.h>

int fd__read_all(int fd, void *to, size_t size)
{
	char *at = to;

	while (size) {
		ssize_t n = read(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		at += n;
		size -= n;
	}
	return 0;
}

int fd__read_all_at(int fd, void *to, size_t size, __u64 offset)
{
	char *at = to;

	while (size) {
		ssize_t n = pread(fd, at, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		at += n;
		size -= n;
		offset += n;
	}
	return 0;
}

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
