// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens regular files for reading, and nothing that waits or has side effects, as pipes and devices. */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"

int regular_file__reopen(int place)
{
	char name[64];
	struct stat st;
	int fd;

	if (fstat(place, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int regular_file__open(const char *path)
{
	_cleanup_(close_fd) int place = open(path, O_PATH | O_CLOEXEC);

	return place < 0 ? -errno : regular_file__reopen(place);
}

int regular_file__open_in(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(close_fd) int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(close_fd) int place = -1;

	if (directory < 0)
		return -errno;
	place = syscall(SYS_openat2, directory, path, &how, sizeof(how));
	return place < 0 ? -errno : regular_file__reopen(place);
}
