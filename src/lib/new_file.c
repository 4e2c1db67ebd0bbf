// SPDX-License-Identifier: GPL-3.0-or-later
#include "new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"
#include "sudo_user.h"

/* As many links as the kernel follows. */
#define MAX_LINKS 40
#define OWN_FILES "/proc/self/fd"
/* Others would have to take as many names as soon as they are free. */
#define MAX_TRIES 16

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

/*
 * Follows the links at @at, which then names what they lead to, as @st describes it: a link only where /proc has it, which
 * leads to an open file that need not have a path. -ENOENT: nothing is at @at.
 */
static int follow(const char *path, char at[PATH_MAX], struct stat *st)
{
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(at, path);
	for (int links = 0; links < MAX_LINKS; links++) {
		_cleanup_(close_fd) int place = open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct statfs system;
		int err;

		if (place < 0 || fstat(place, st) || fstatfs(place, &system))
			return -errno;
		if (!S_ISLNK(st->st_mode))
			return 0;
		if (!new_file__is_ours(st->st_uid))
			return -EACCES;
		if (system.f_type == PROC_SUPER_MAGIC)
			return 0;
		err = step_over(place, at);
		if (err)
			return err;
	}
	return -ELOOP;
}

int new_file__open_existing(const char *path)
{
	char at[PATH_MAX];
	struct stat st;
	int fd, err = follow(path, at, &st);

	/* A link of ours to where nothing is yet. Not given away: it may be a place where the user who
	 * ran sudo may have no files. */
	if (err == -ENOENT && strcmp(at, path))
		return create(at, 0666);
	if (err)
		return err;
	if (!S_ISLNK(st.st_mode))
		return open_plain(at, &st);
	fd = open(at, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int new_file__find_place(const char *path, char **place)
{
	char at[PATH_MAX];
	struct stat st;
	int err = follow(path, at, &st);

	if (err && err != -ENOENT)
		return err;
	if (!err && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!err && !S_ISREG(st.st_mode))
		return -EINVAL;
	*place = strdup(at);
	return *place ? 0 : -ENOMEM;
}

static int create_unnamed(const char *path)
{
	_cleanup_(free_ptr) char *copy = strdup(path);
	int fd;

	if (!copy)
		return -ENOMEM;
	/* Without /proc it could get no name. */
	if (access(OWN_FILES, X_OK))
		return -errno;
	fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	give_away(fd);
	return fd;
}

int new_file__begin(struct new_file *file, const char *path)
{
	int err = new_file__find_place(path, &file->place);

	if (err)
		return err;
	file->fd = create_unnamed(file->place);
	if (file->fd >= 0)
		return 0;
	/* The file system, or the kernel's view of it, has no such files; any other reason applies to this one, too. */
	if (asprintf(&file->temporary, "%s.XXXXXX", file->place) < 0)
		file->temporary = NULL;
	file->fd = file->temporary ? new_file__create_unique(file->temporary) : -ENOMEM;
	if (file->fd >= 0)
		return 0;
	err = file->fd;
	free(file->temporary);
	free(file->place);
	*file = (struct new_file){ .fd = -1 };
	return err;
}

/* Gives the file without a name one beside its place: link() replaces nothing, rename() does. */
static int name_it(struct new_file *file)
{
	char own[sizeof(OWN_FILES) + 11];
	int err = -EEXIST;

	snprintf(own, sizeof(own), OWN_FILES "/%d", file->fd);
	for (int tries = 0; err == -EEXIST && tries < MAX_TRIES; tries++) {
		_cleanup_(free_ptr) char *name = NULL;
		unsigned int random;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random) ||
		    asprintf(&name, "%s.%08x", file->place, random) < 0)
			return -ENOMEM;
		err = linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
		if (!err) {
			file->temporary = name;
			name = NULL;
		}
	}
	return err;
}

int new_file__finish(struct new_file *file)
{
	int err = file->temporary ? 0 : name_it(file);

	if (!err && rename(file->temporary, file->place))
		err = -errno;
	if (!err) {
		free(file->temporary);
		file->temporary = NULL;
	}
	return err;
}

void new_file__release(struct new_file *file)
{
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->place);
	close_fd(&file->fd);
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
