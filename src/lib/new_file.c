// SPDX-License-Identifier: GPL-3.0-or-later
#include "new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "user.h"

#define OWN_FILES "/proc/self/fd"
/* Maximum number of names that are tried: another process would have to create as many names just
 * before this one does. */
#define MAX_TRIES 16
#define OLDER	  ".old"

/* Gives a new, empty file to the user who ran sudo. File systems without owners refuse that; the
 * error is ignored. */
static void give_to_sudo_user(int fd)
{
	uid_t user;
	gid_t group;
	int err = 0;

	/* If the group is -1, fchown(2) leaves it as it is. */
	if (sudo_user__find(&user, &group))
		err = fchown(fd, user, group);
	(void)err;
}

/* Returns whether other users may create files in @directory, and may remove only their own. */
static bool is_shared(int directory)
{
	struct stat st;

	return fstat(directory, &st) || (st.st_mode & S_ISVTX && st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Returns whether another user has put the file into a directory where all users may create files.
 * Only root can put a device there. */
static bool is_of_another(const struct stat *st, int directory)
{
	return !S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode) &&
	       !directory_entry__is_ours(st->st_uid) && is_shared(directory);
}

/* Opens a file that is not a link. @st is its status from a moment ago. */
static int open_plain(const struct directory_entry *entry, const struct stat *st)
{
	/* Opening a FIFO that this user or root owns waits for its reader; opening a file that
	 * another user has put in its place must not wait. */
	int waits = S_ISFIFO(st->st_mode) ? 0 : O_NONBLOCK;
	struct stat now;
	int fd;

	if (is_of_another(st, entry->directory))
		return -EACCES;
	fd = openat(entry->directory, entry->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | waits);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &now) || is_of_another(&now, entry->directory) ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK)) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

int new_file__open_existing(const char *path)
{
	_cleanup_(directory_entry__release) struct directory_entry entry;
	struct stat st;
	int fd, err = directory_entry__find(path, &entry, &st);

	if (err)
		return err;
	if (!S_ISLNK(st.st_mode))
		return open_plain(&entry, &st);
	fd = openat(entry.directory, entry.name, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Writes a name to @name that is most likely free in the entry's directory. Returns 0 or a
 * negative errno. */
static int make_temporary_name(const struct new_file *file, char name[NAME_MAX + 1])
{
	unsigned int random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	return snprintf(name, NAME_MAX + 1, "%s.%08x", file->entry.name, random) > NAME_MAX
		       ? -ENAMETOOLONG
		       : 0;
}

/* Creates the file under a temporary name. */
static int create_named(struct new_file *file, mode_t mode)
{
	int err = -EEXIST;

	for (int tries = 0; err == -EEXIST && tries < MAX_TRIES; tries++) {
		err = make_temporary_name(file, file->temporary);
		if (err)
			break;
		file->fd = openat(file->entry.directory, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		err = file->fd < 0 ? -errno : 0;
	}
	if (err)
		file->temporary[0] = '\0';
	return err;
}

/* Creates the file without a name. Without /proc such a file could not get a name, so none is
 * created. If O_TMPFILE fails for another reason than that it is unsupported, creating a file with
 * a name fails, too. */
static void create_unnamed(struct new_file *file, mode_t mode)
{
	if (!access(OWN_FILES, X_OK))
		file->fd = openat(file->entry.directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

static int begin_file(struct new_file *file, const char *path, mode_t mode, bool like)
{
	struct stat st;
	int err, found;

	*file = NEW_FILE_NONE;
	err = found = directory_entry__find(path, &file->entry, &st);
	if (err && file->entry.directory < 0)
		return err;
	err = 0;
	if (!found && S_ISDIR(st.st_mode))
		err = -EISDIR;
	else if (!found && !S_ISREG(st.st_mode))
		err = -EINVAL;
	/* open(2) refuses another user's file in a sticky directory, and so does this function. */
	else if (!found && like && is_of_another(&st, file->entry.directory))
		err = -EACCES;
	else if (!found && like &&
		 faccessat(file->entry.directory, file->entry.name, W_OK, AT_EACCESS))
		err = -errno;
	if (!err) {
		create_unnamed(file, mode);
		if (file->fd < 0)
			err = create_named(file, mode);
	}
	if (!err && (found || !like))
		give_to_sudo_user(file->fd);
	else if (!err && fchown(file->fd, st.st_uid, st.st_gid))
		err = -EPERM;
	else if (!err && fchmod(file->fd, st.st_mode & 0777))
		err = -errno;
	if (err)
		new_file__release(file);
	return err;
}

int new_file__begin(struct new_file *file, const char *path)
{
	return begin_file(file, path, 0600, false);
}

int new_file__begin_output(struct new_file *file, const char *path)
{
	int fd, err = begin_file(file, path, 0666, true);

	if (err != -EINVAL && err != -EPERM && err != -EACCES && err != -EROFS)
		return err;
	fd = new_file__open_existing(path);
	if (fd < 0)
		return err == -EINVAL ? fd : err;
	file->fd = fd;
	file->is_old = true;
	return 0;
}

int new_file__empty(struct new_file *file)
{
	/* Pipes and devices cannot be truncated, and need not be. */
	return !file->is_old || !ftruncate(file->fd, 0) || errno == EINVAL ? 0 : -errno;
}

int new_file__keep(struct new_file *file)
{
	char own[sizeof(OWN_FILES) + 11], name[NAME_MAX + 1];
	int err = file->temporary[0] ? 0 : -EEXIST;

	snprintf(own, sizeof(own), OWN_FILES "/%d", file->fd);
	/* linkat(2) does not replace a file, renameat(2) does. */
	for (int tries = 0; err == -EEXIST && tries < MAX_TRIES; tries++) {
		err = make_temporary_name(file, name);
		if (err)
			return err;
		err = linkat(AT_FDCWD, own, file->entry.directory, name, AT_SYMLINK_FOLLOW) ? -errno
											    : 0;
		if (!err)
			strcpy(file->temporary, name);
	}
	return err;
}

static int move_file(const struct new_file *file, const char *from, const char *to,
		     unsigned int flags)
{
	int directory = file->entry.directory;

	return renameat2(directory, from, directory, to, flags) ? -errno : 0;
}

int new_file__finish(struct new_file *file)
{
	int err = file->is_old ? 0 : new_file__keep(file);

	if (!err && !file->is_old)
		err = move_file(file, file->temporary, file->entry.name, 0);
	if (!err)
		file->temporary[0] = '\0';
	return err;
}

/* Renames the file to its path, and an older file to the name @older. */
static int replace_file(const struct new_file *file, const char *older)
{
	const char *name = file->temporary, *entry = file->entry.name;
	int err = move_file(file, name, entry, RENAME_EXCHANGE);

	/* Exchange the two files, if the file system can, so that there always is a file at the
	 * path. */
	if (!err) {
		err = move_file(file, name, older, 0);
		if (err)
			(void)move_file(file, name, entry, RENAME_EXCHANGE);
		return err;
	}
	if (err != -ENOENT) {
		err = move_file(file, entry, older, 0);
		if (err && err != -ENOENT)
			return err;
	}
	err = move_file(file, name, entry, 0);
	if (err)
		(void)move_file(file, older, entry, RENAME_NOREPLACE);
	return err;
}

int new_file__finish_keeping(struct new_file *file)
{
	char older[NAME_MAX + 1];
	int err;

	if ((size_t)snprintf(older, sizeof(older), "%s" OLDER, file->entry.name) >= sizeof(older))
		return -ENAMETOOLONG;
	err = new_file__keep(file);
	if (!err)
		err = replace_file(file, older);
	if (!err)
		file->temporary[0] = '\0';
	return err;
}

void new_file__release(struct new_file *file)
{
	if (file->temporary[0])
		unlinkat(file->entry.directory, file->temporary, 0);
	directory_entry__release(&file->entry);
	close_fd(&file->fd);
	*file = NEW_FILE_NONE;
}

const char *new_file__reason(int err)
{
	return err == -ELOOP ? "a link of another user's is on the way, which is not followed"
			     : strerror(-err);
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
	_cleanup_(directory_entry__release) struct directory_entry entry = { .directory = -1 };
	_cleanup_(free_ptr) char *bare = strdup(path);
	_cleanup_(close_fd) int fd = -1;
	struct stat st;
	int err;

	if (!bare)
		return -ENOMEM;
	/* Remove slashes at the end, which mkdir(2) also accepts. */
	for (size_t len = strlen(bare); len > 1 && bare[len - 1] == '/'; len--)
		bare[len - 1] = '\0';
	err = directory_entry__find(bare, &entry, &st);
	if (!err)
		return -EEXIST;
	if (entry.directory < 0)
		return err;
	if (mkdirat(entry.directory, entry.name, mode))
		return -errno;
	/* The owner of the parent directory may have replaced the directory by now; if it is not
	 * empty, it is not the one that this function has made. */
	fd = openat(entry.directory, entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() && is_empty(fd))
		give_to_sudo_user(fd);
	return 0;
}
