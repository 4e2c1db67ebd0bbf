// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * libelf and libdw open files by themselves, and find out by which path a file was opened. In a
 * worker these system calls raise SIGSYS instead, and the handler answers in the kernel's place,
 * so that the libraries notice nothing. The handler also answers fstat(2): a file system in user
 * space (FUSE) allows that only to the user who mounted it, which at most the parent is.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confinement.h"
#include "worker_internal.h"
#include "worker_trap.h"

/* Returns the descriptor that a path in /proc/self/fd names, or -1. */
static int named_fd(const char *path)
{
	static const char directory[] = "/proc/self/fd/";
	int fd = 0;

	if (strncmp(path, directory, strlen(directory)))
		return -1;
	path += strlen(directory);
	if (!*path || strlen(path) > 5)
		return -1;
	for (; *path; path++) {
		if (*path < '0' || *path > '9')
			return -1;
		fd = fd * 10 + *path - '0';
	}
	return fd;
}

static long open_file(const char *path)
{
	int fd = named_fd(path);

	if (fd < 0)
		return worker_request__open(path);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Answers readlink(2): realpath() calls it for each part of a path. Only descriptors in
 * /proc/self/fd count as links. */
static long read_link(const char *path, char *to, size_t size)
{
	int fd = named_fd(path);

	return fd < 0 ? -EINVAL : worker_request__name(fd, to, size);
}

static long get_status(int fd, struct stat *st)
{
	long err = syscall(SYS_newfstatat, fd, "", st, WORKER_STATUS_FLAGS) ? -errno : 0;

	return err == -EACCES ? worker_request__status(fd, st) : err;
}

/* Answers newfstatat(2). Workers may ask for the status of a descriptor, not for that of a path. */
static long get_status_at(int fd, const char *path, struct stat *st, int flags)
{
	return flags & AT_EMPTY_PATH && !*path ? get_status(fd, st) : -EACCES;
}

static long answer(const struct trapped_call *call)
{
	const __u64 *arguments = call->arguments;
	const char *path = (const char *)arguments[1];

	switch (call->number) {
	/* The libraries use no paths that are relative to other directories. */
	case SYS_openat:
	case SYS_openat2:
		return open_file(path);
	case SYS_readlinkat:
		return read_link(path, (char *)arguments[2], arguments[3]);
	case SYS_fstat:
		return get_status((int)arguments[0], (struct stat *)path);
	case SYS_newfstatat:
		return get_status_at((int)arguments[0], path, (struct stat *)arguments[2],
				     (int)arguments[3]);
	case SYS_ioctl:
		return -ENOTTY;
	}
	return -EACCES;
}

static void handle(int number, siginfo_t *info, void *context)
{
	struct trapped_call call = trapped_call__read(context, info->si_syscall);
	int before = errno;

	trapped_call__answer(context, answer(&call));
	errno = before;
}

void worker_trap__set(void)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
}
