// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes the directory of a measurement's shared memory, which its owner keeps locked, and removes
 * directories of owners that were killed. */
#include "preload_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "file.h"

static const char variable[] = "LD_PRELOAD=";

static bool is_preload(const char *entry)
{
	return !strncmp(entry, variable, sizeof(variable) - 1);
}

char **preload__environment(const struct preload *preload, char *const *environment, bool is_other)
{
	const char *name = is_other ? INSIDE_OTHER : INSIDE_LIBRARY;
	const char *others = "";
	size_t n = 0, text_bytes, at = 0;
	char **copy, *text;

	for (; environment[n]; n++)
		if (is_preload(environment[n]))
			others = environment[n] + sizeof(variable) - 1;
	text_bytes = sizeof(variable) + strlen(preload->directory) + sizeof("/:") + strlen(name) +
		     strlen(others);
	copy = malloc((n + 2) * sizeof(*copy) + text_bytes);
	if (!copy)
		return NULL;
	text = (char *)(copy + n + 2);
	snprintf(text, text_bytes, "%s%s/%s%s%s", variable, preload->directory, name,
		 *others ? ":" : "", others);
	/* The new value takes the place of the first one: programs that print their environment
	 * show the same order. */
	for (size_t i = 0; i < n; i++) {
		if (!is_preload(environment[i]))
			copy[at++] = environment[i];
		else if (text) {
			copy[at++] = text;
			text = NULL;
		}
	}
	if (text)
		copy[at++] = text;
	copy[at] = NULL;
	return copy;
}

static const char prefix[] = "allocprof-";
/* Length of the suffix that mkdtemp(3) puts in place of XXXXXX. */
#define RANDOM_LENGTH 6

__u64 preload__room_bytes(int fd)
{
	struct statvfs status;

	/* A memory file system without a limit reports 0 blocks. */
	if (fstatvfs(fd, &status) || !status.f_blocks)
		return UINT64_MAX;
	return (__u64)status.f_bavail * status.f_frsize;
}

static void remove_files(int directory_fd)
{
	static const char *const names[] = { INSIDE_LIBRARY, INSIDE_OTHER, INSIDE_MEMORY,
					     INSIDE_TABLES, INSIDE_WAKE };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlinkat(directory_fd, names[i], 0);
}

/* Returns whether some program that was executed with the library in LD_PRELOAD has not begun yet. */
static bool is_any_on_its_way(const struct preload *preload)
{
	__u64 counts[2]; /* n_injected, n_begun */

	return preload->memory_fd >= 0 &&
	       pread(preload->memory_fd, counts, sizeof(counts),
		     offsetof(struct inside_header, n_injected)) == sizeof(counts) &&
	       (counts[0] > (counts[1] ? counts[1] - 1 : 0) ||
		(preload->is_command_awaited && !counts[1]));
}

/* Removes the directory's files except the library, without which the dynamic linker would print
 * an error. sweep() removes the directory when the next measurement begins. */
static void leave_library_alone(int directory_fd)
{
	const __u64 magic = INSIDE_MAGIC;
	_cleanup_(close_fd) int fd = -1;

	unlinkat(directory_fd, INSIDE_TABLES, 0);
	unlinkat(directory_fd, INSIDE_WAKE, 0);
	unlinkat(directory_fd, INSIDE_MEMORY, 0);
	fd = openat(directory_fd, INSIDE_MEMORY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		fd__write_all_at(fd, &magic, sizeof(magic), offsetof(struct inside_header, magic));
}

void preload__leave_library(struct preload *preload)
{
	preload->is_command_awaited = true;
}

void preload__remove_directory(const struct preload *preload)
{
	if (preload->directory_fd >= 0 && is_any_on_its_way(preload)) {
		leave_library_alone(preload->directory_fd);
		return;
	}
	if (preload->directory_fd >= 0)
		remove_files(preload->directory_fd);
	if (preload->directory[0])
		rmdir(preload->directory);
}

/* Returns whether this user's allocprof has made and filled the directory. */
static bool is_own(int directory_fd)
{
	_cleanup_(close_fd) int fd =
		openat(directory_fd, INSIDE_MEMORY, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat directory, memory;
	__u64 magic = 0;

	return fd >= 0 && !fstat(directory_fd, &directory) && !fstat(fd, &memory) &&
	       directory.st_uid == geteuid() && memory.st_uid == geteuid() &&
	       S_ISREG(memory.st_mode) &&
	       pread(fd, &magic, sizeof(magic), offsetof(struct inside_header, magic)) ==
		       sizeof(magic) &&
	       magic == INSIDE_MAGIC;
}

/* Stops the measurement of an owner that is gone, so that no process waits for answers any more. */
static void stop(int directory_fd)
{
	_cleanup_(close_fd) int fd =
		openat(directory_fd, INSIDE_MEMORY, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const __u32 gate = INSIDE_STOPPED;

	if (fd >= 0)
		fd__write_all_at(fd, &gate, sizeof(gate), offsetof(struct inside_header, gate));
}

/* Removes the directories whose owners are gone. Their processes that still run go on, but their
 * counts are not read. */
static void sweep(const char *parent)
{
	DIR *list = opendir(parent);
	const struct dirent *entry;

	while (list && (entry = readdir(list))) {
		_cleanup_(close_fd) int fd = -1;

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    strlen(entry->d_name) != strlen(prefix) + RANDOM_LENGTH)
			continue;
		fd = openat(dirfd(list), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || !is_own(fd))
			continue;
		stop(fd);
		remove_files(fd);
		unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
	}
	if (list)
		closedir(list);
}

/* Directories to try; the first two usually are memory file systems. */
static const char *const parents[] = { "/dev/shm", "/run/shm", "/tmp", "/var/tmp" };

/* Room with which a directory is good enough. In containers /dev/shm often has only 64 MiB. */
#define ENOUGH_BYTES (1ULL << 30)

/* Returns whether a later one of the directories can be written, too, and has more room. */
static bool is_surpassed(size_t index)
{
	_cleanup_(close_fd) int fd = open(parents[index], O_PATH | O_DIRECTORY | O_CLOEXEC);
	__u64 room = fd < 0 ? 0 : preload__room_bytes(fd);

	for (size_t i = index + 1; i < ARRAY_SIZE(parents) && room < ENOUGH_BYTES; i++) {
		_cleanup_(close_fd) int other = open(parents[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (other >= 0 && !faccessat(AT_FDCWD, parents[i], W_OK | X_OK, AT_EACCESS) &&
		    preload__room_bytes(other) > room)
			return true;
	}
	return false;
}

/* Checks a user's directory. Returns 0; -EPERM if another user owns it or may write to it; or
 * another negative errno. */
static int check_users(int parent, const char *name)
{
	struct stat status;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
			       !(status.st_mode & (S_IWGRP | S_IWOTH))
		       ? 0
		       : -EPERM;
}

/* Finds a directory of this user's in @parent that is named "<usual>-XXXXXX", or makes one, and
 * stores its path in @out. */
static int make_another(const char *parent, const char *usual, char out[INSIDE_PATH_BYTES])
{
	_cleanup_(close_directory) DIR *list = opendir(parent);
	const char *name = usual + strlen(parent) + 1;
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (!strncmp(entry->d_name, name, strlen(name)) &&
		    entry->d_name[strlen(name)] == '-' &&
		    strlen(entry->d_name) == strlen(name) + 1 + RANDOM_LENGTH &&
		    !check_users(dirfd(list), entry->d_name)) {
			snprintf(out, INSIDE_PATH_BYTES, "%s/%s", parent, entry->d_name);
			return 0;
		}
	snprintf(out, INSIDE_PATH_BYTES, "%s-XXXXXX", usual);
	return mkdtemp(out) ? 0 : -errno;
}

/*
 * Makes the directory of this user's measurements in @parent, to which others may write, and
 * stores its path in @out. The directory stays: processes that go on after their measurement, or
 * whose LD_PRELOAD nobody restores, still name files in it, and whoever could make a directory of
 * that name could have them load a library. If another user has taken the usual name, the
 * directory gets a random one, which nobody can take beforehand.
 */
static int make_users_directory(const char *parent, char out[INSIDE_PATH_BYTES])
{
	char usual[64];
	int err;

	snprintf(usual, sizeof(usual), "%s/allocprof-%u", parent, geteuid());
	if (mkdir(usual, 0700) && errno != EEXIST)
		return -errno;
	err = check_users(AT_FDCWD, usual);
	if (err == -EPERM)
		return make_another(parent, usual, out);
	strcpy(out, usual);
	return err;
}

/* Makes the measurement's directory in @parent. The path must fit. */
static int make_in(struct preload *preload, const char *parent)
{
	int err;

	if ((size_t)snprintf(preload->directory, sizeof(preload->directory), "%s/allocprof-XXXXXX",
			     parent) >= sizeof(preload->directory)) {
		preload->directory[0] = 0;
		return -ENAMETOOLONG;
	}
	sweep(parent);
	if (mkdtemp(preload->directory))
		return 0;
	err = -errno;
	preload->directory[0] = 0;
	return err;
}

/* Checks that LD_PRELOAD can name a file in the directory @chosen. Returns 0, -ENAMETOOLONG or
 * -EINVAL. */
static int check_chosen(const struct preload *preload, const char *chosen, struct error *error)
{
	if (strlen(chosen) + sizeof("/allocprof-XXXXXX") > sizeof(preload->directory))
		return error__set(error, -ENAMETOOLONG,
				  "the path '%s' is too long for the shared memory", chosen);
	/* These characters separate libraries in LD_PRELOAD, or begin a dynamic string token. */
	if (strpbrk(chosen, ": $"))
		return error__set(error, -EINVAL,
				  "the path '%s' for the shared memory has a colon, a space or a "
				  "dollar sign, which LD_PRELOAD cannot name",
				  chosen);
	return 0;
}

/* Makes the directory in the first parent that permits it. @with_room: skips parents that have
 * less room than another one. */
static int make_in_any(struct preload *preload, bool with_room)
{
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
		char users[INSIDE_PATH_BYTES];

		if (with_room && is_surpassed(i))
			continue;
		err = make_users_directory(parents[i], users);
		if (!err)
			err = make_in(preload, users);
		if (!err)
			return 0;
	}
	return err;
}

int preload__make_directory(struct preload *preload, struct error *error)
{
	const char *chosen = getenv("ALLOCPROF_INSIDE_DIR");
	int err = chosen ? check_chosen(preload, chosen, error) : 0;

	if (err)
		return err;
	err = chosen ? make_in(preload, chosen) : make_in_any(preload, true);
	/* The parent with most room may not let this user make a directory. */
	if (err && !chosen)
		err = make_in_any(preload, false);
	if (err)
		return error__set(error, err,
				  "cannot make a directory for the shared memory in %s: %s; "
				  "ALLOCPROF_INSIDE_DIR in the environment names another one",
				  chosen ? chosen : "/dev/shm or /tmp", strerror(-err));
	preload->directory_fd = open(preload->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (preload->directory_fd < 0)
		return error__set(error, -errno, "cannot open '%s': %s", preload->directory,
				  strerror(errno));
	/* Another allocprof holds the lock for a moment while it removes old directories. If the
	 * file system has no locks, nobody does that. */
	(void)flock(preload->directory_fd, LOCK_EX);
	return 0;
}
