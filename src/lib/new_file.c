// SPDX-License-Identifier: GPL-3.0-or-later
#include "new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"
#include "sudo_user.h"

/* As many links as the kernel follows. */
#define MAX_LINKS 40

/* Gives a new, empty file to the user who ran sudo. File systems without owners refuse, which is
 * ignored. */
static void give_away(int fd)
{
	uid_t user;
	gid_t group;
	int err = 0;

	/* A group of -1 stays as it is. */
	if (sudo_user__find(&user, &group))
		err = fchown(fd, user, group);
	(void)err;
}

static int create(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd;
}

int new_file__create(const char *path, mode_t mode)
{
	int fd = create(path, mode);

	if (fd >= 0)
		give_away(fd);
	return fd;
}

int new_file__create_unique(char *path)
{
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	give_away(fd);
	return fd;
}

bool new_file__is_ours(uid_t user)
{
	uid_t caller;
	gid_t group;

	return !user || user == geteuid() || (sudo_user__find(&caller, &group) && user == caller);
}

/* The path that the link @fd at @path leads to. 0 or a negative errno. */
static int step_over(int fd, char path[PATH_MAX])
{
	char target[PATH_MAX], *slash = strrchr(path, '/');
	ssize_t len = readlinkat(fd, "", target, sizeof(target));
	size_t directory = len <= 0 || *target == '/' || !slash ? 0 : slash + 1 - path;

	if (len < 0)
		return -errno;
	if (directory + len >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path + directory, target, len);
	path[directory + len] = '\0';
	return 0;
}

/* Whether others may make files in the directory of @path, and remove only their own. */
static bool is_shared(const char *path)
{
	_cleanup_(free_ptr) char *copy = strdup(path);
	struct stat st;

	if (!copy || stat(dirname(copy), &st))
		return true;
	return st.st_mode & S_ISVTX && st.st_mode & (S_IWGRP | S_IWOTH);
}

/* Returns whether another user has put the file into a directory where all may make files. Nobody can put a device there. */
static bool is_of_another(const struct stat *st, const char *path)
{
	return !S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode) && !new_file__is_ours(st->st_uid) &&
	       is_shared(path);
}

/* Opens a file that is no link. @st describes it as it was a moment ago. */
static int open_plain(const char *path, const struct stat *st)
{
	/* A FIFO of ours waits for its reader; a file that another user puts in its place is not waited for. */
	int waits = S_ISFIFO(st->st_mode) ? 0 : O_NONBLOCK;
	struct stat now;
	int fd;

	if (is_of_another(st, path))
		return -EACCES;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | waits);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &now) || is_of_another(&now, path) ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK)) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

int new_file__open_existing(const char *path)
{
	char at[PATH_MAX];

	if (strlen(path) >= sizeof(at))
		return -ENAMETOOLONG;
	strcpy(at, path);
	for (int links = 0; links < MAX_LINKS; links++) {
		_cleanup_(close_fd) int place = open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct statfs system;
		struct stat st;
		int err;

		/* A link of ours to where nothing is yet. Not given away: it may be a place where the user who
		 * ran sudo may have no files. */
		if (place < 0 && errno == ENOENT && links)
			return create(at, 0666);
		if (place < 0 || fstat(place, &st) || fstatfs(place, &system))
			return -errno;
		if (!S_ISLNK(st.st_mode))
			return open_plain(at, &st);
		if (!new_file__is_ours(st.st_uid))
			return -EACCES;
		/* Those of descriptors, such as /dev/stdout, lead to files that have no path. */
		if (system.f_type == PROC_SUPER_MAGIC) {
			int fd = open(at, O_WRONLY | O_CLOEXEC);

			return fd < 0 ? -errno : fd;
		}
		err = step_over(place, at);
		if (err)
			return err;
	}
	return -ELOOP;
}

static bool is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	bool found = !directory;

	while (!found && (entry = readdir(directory)))
		found = strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	if (directory)
		closedir(directory);
	else
		close_fd(&copy);
	return !found;
}

int new_file__make_directory(const char *path, mode_t mode)
{
	_cleanup_(close_fd) int fd = -1;
	struct stat st;

	if (mkdir(path, mode))
		return -errno;
	/* The owner of the parent directory may have replaced it by now; if it is not empty, it is
	 * not ours to chown. */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() && is_empty(fd))
		give_away(fd);
	return 0;
}
