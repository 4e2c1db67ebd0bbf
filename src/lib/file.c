// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens, reads and writes files and descriptors, whole or not at all. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"

int regular_file__reopen(int path_fd)
{
	char name[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int regular_file__open(const char *path)
{
	_cleanup_(close_fd) int path_fd = open(path, O_PATH | O_CLOEXEC);

	return path_fd < 0 ? -errno : regular_file__reopen(path_fd);
}

int regular_file__open_in(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(close_fd) int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(close_fd) int path_fd = -1;

	if (directory < 0)
		return -errno;
	path_fd = syscall(SYS_openat2, directory, path, &how, sizeof(how));
	return path_fd < 0 ? -errno : regular_file__reopen(path_fd);
}

/* Reads at *@offset and moves that, or at the descriptor's own offset if @offset is NULL. */
static int read_all(int fd, char *to, size_t size, __u64 *offset)
{
	while (size) {
		ssize_t n = offset ? pread(fd, to, size, *offset) : read(fd, to, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		to += n;
		size -= n;
		if (offset)
			*offset += n;
	}
	return 0;
}

int fd__read_all(int fd, void *to, size_t size)
{
	return read_all(fd, to, size, NULL);
}

/* The file may be memory that other processes change: what they have stored before a value that is read is read after
 * it, and what is written after other values is seen after them, by those who look for that. */

int fd__read_all_at(int fd, void *to, size_t size, __u64 offset)
{
	int err = read_all(fd, to, size, &offset);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return err;
}

static int write_all(int fd, const char *from, size_t size, __u64 *offset)
{
	while (size) {
		ssize_t n = offset ? pwrite(fd, from, size, *offset) : write(fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		size -= n;
		if (offset)
			*offset += n;
	}
	return 0;
}

int fd__write_all(int fd, const void *from, size_t size)
{
	return write_all(fd, from, size, NULL);
}

int fd__write_all_at(int fd, const void *from, size_t size, __u64 offset)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return write_all(fd, from, size, &offset);
}

#define FIRST_BYTES 4096

int text_file__read(int fd, size_t most_bytes, char **text, size_t *size_bytes)
{
	_cleanup_(free_ptr) char *bytes = NULL;
	size_t room = 0, size = 0;
	ssize_t n;

	do {
		size_t left;

		if (array__reserve(&bytes, &room, size ? size + 2 : FIRST_BYTES, 1))
			return -ENOMEM;
		left = room - 1 - size < most_bytes - size ? room - 1 - size : most_bytes - size;
		/* Other processes may share the descriptor's own offset, so read by pread(2). A
		 * FIFO has no offset. */
		n = pread(fd, bytes + size, left, size);
		if (n < 0 && errno == ESPIPE)
			n = read(fd, bytes + size, left);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return -errno;
		else
			size += n;
	} while (n > 0 && size < most_bytes);
	bytes[size] = '\0';
	*text = bytes;
	bytes = NULL;
	*size_bytes = size;
	return 0;
}

bool directory__is_safe(int directory, uid_t owner, bool may_be_shared)
{
	struct stat st;

	if (fstat(directory, &st) || (st.st_uid != owner && !(may_be_shared && !st.st_uid)))
		return false;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) || (may_be_shared && st.st_mode & S_ISVTX);
}
