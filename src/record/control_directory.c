// SPDX-License-Identifier: GPL-3.0-or-later
#include "control_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "cleanup.h"
#include "error.h"

char *control_directory__path(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (!geteuid())
		return strdup("/run/allocprof");
	if (!runtime || *runtime != '/' || asprintf(&path, "%s/allocprof", runtime) < 0)
		return NULL;
	return path;
}

int control_directory__open(bool make, struct error *error)
{
	_cleanup_(free_ptr) char *path = control_directory__path();
	struct stat st;
	int fd;

	if (!path)
		return error__set(error, -ENOENT,
				  "there is no directory for the sockets of recordings; set "
				  "XDG_RUNTIME_DIR");
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return error__set(error, -errno, "cannot make %s: %s", path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error__set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return fd;
	close(fd);
	return error__set(error, -EPERM,
			  "%s is not used: it is another user's, or open to others; remove it",
			  path);
}

void control_directory__address(int directory, const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", directory,
		 name);
}

void control_directory__name(pid_t pid, char name[CONTROL_NAME_SIZE])
{
	snprintf(name, CONTROL_NAME_SIZE, "%d.sock", pid);
}

pid_t control_directory__pid(const char *name)
{
	char *end;
	long pid;

	if (*name < '1' || *name > '9')
		return 0;
	pid = strtol(name, &end, 10);
	return !strcmp(end, ".sock") && pid <= INT_MAX ? (pid_t)pid : 0;
}

int control_directory__connect(int directory, const char *name)
{
	struct timeval patience = { .tv_sec = CONTROL_PATIENCE_SECONDS };
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	control_directory__address(directory, name, &address);
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}
