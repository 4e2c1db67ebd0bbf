// SPDX-License-Identifier: GPL-3.0-or-later
/* Walks a path to its last directory, one name at a time, and refuses links that another user may
 * have put there. */
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"
#include "user.h"

/* Maximum number of links that are followed, as in the kernel (MAXSYMLINKS). */
#define MAX_LINKS 40

struct walk {
	int directory;
	char rest[PATH_MAX]; /* rest of the path, below the directory */
	int links;
};

bool directory_entry__is_ours(uid_t user)
{
	uid_t caller;
	gid_t group;

	return !user || user == geteuid() || (sudo_user__find(&caller, &group) && user == caller);
}

static void walk_enter(struct walk *walk, int directory)
{
	close_fd(&walk->directory);
	walk->directory = directory;
}

/* Opens the directory that the path in @rest begins at: the root or the working directory. */
static int walk_begin(struct walk *walk)
{
	int fd = open(*walk->rest == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	walk_enter(walk, fd);
	return 0;
}

/* Replaces the link @link by its target, which @rest is appended to. */
static int walk_follow_link(struct walk *walk, int link, const char *rest)
{
	char path[PATH_MAX];
	ssize_t len = readlinkat(link, "", path, sizeof(path));
	size_t rest_len = strlen(rest);

	if (len <= 0)
		return len ? -errno : -ENOENT;
	if (++walk->links > MAX_LINKS)
		return -ELOOP;
	if (len + rest_len >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path + len, rest, rest_len + 1);
	strcpy(walk->rest, path);
	return *path == '/' ? walk_begin(walk) : 0;
}

/* Goes through @name, which is in the middle of the path. Returns 0 or a negative errno. */
static int walk_middle_name(struct walk *walk, const char *name, const char *rest)
{
	/* O_DIRECTORY makes the kernel mount a file system that is mounted on demand. */
	int fd = openat(walk->directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(close_fd) int link = -1;
	struct statfs system;
	struct stat st;

	if (fd < 0 && errno == ENOTDIR) {
		link = openat(walk->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (link < 0 || fstat(link, &st) || fstatfs(link, &system))
			return -errno;
		if (!S_ISLNK(st.st_mode))
			return -ENOTDIR;
		if (!directory_entry__is_ours(st.st_uid))
			return -ELOOP;
		if (system.f_type != PROC_SUPER_MAGIC)
			return walk_follow_link(walk, link, rest);
		fd = openat(walk->directory, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	walk_enter(walk, fd);
	memmove(walk->rest, rest, strlen(rest) + 1);
	return 0;
}

/* Looks at @name, the end of the path. Returns 1 if @st describes it; 0 if it was a link, which
 * will be followed; or a negative errno. */
static int walk_last_name(struct walk *walk, const char *name, struct stat *st)
{
	_cleanup_(close_fd) int fd = openat(walk->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs system;

	if (fd < 0 || fstat(fd, st) || fstatfs(fd, &system))
		return -errno;
	if (!S_ISLNK(st->st_mode))
		return 1;
	if (!directory_entry__is_ours(st->st_uid))
		return -ELOOP;
	if (system.f_type == PROC_SUPER_MAGIC)
		return 1;
	return walk_follow_link(walk, fd, "");
}

/* Goes one name on. Returns 1 if @name is the end of the path and @st describes it; 0 if there is
 * more to walk; or a negative errno. */
static int walk_one_name(struct walk *walk, char name[NAME_MAX + 1], struct stat *st)
{
	const char *from = walk->rest + strspn(walk->rest, "/");
	size_t len = strcspn(from, "/");
	char rest[PATH_MAX];

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	name[len] = '\0';
	/* The path is the root directory, or ends in a slash. */
	if (!len)
		strcpy(name, ".");
	strcpy(rest, from + len);
	return *rest ? walk_middle_name(walk, name, rest) : walk_last_name(walk, name, st);
}

int directory_entry__find(const char *path, struct directory_entry *entry, struct stat *st)
{
	struct walk walk = { .directory = -1 };
	int err;

	entry->directory = -1;
	if (strlen(path) >= sizeof(walk.rest))
		return -ENAMETOOLONG;
	if (!*path)
		return -ENOENT;
	strcpy(walk.rest, path);
	err = walk_begin(&walk);
	while (!err)
		err = walk_one_name(&walk, entry->name, st);
	if (err > 0 || (err == -ENOENT && !strchr(walk.rest + strspn(walk.rest, "/"), '/'))) {
		entry->directory = walk.directory;
		return err > 0 ? 0 : err;
	}
	close_fd(&walk.directory);
	return err;
}

void directory_entry__release(struct directory_entry *entry)
{
	close_fd(&entry->directory);
	entry->directory = -1;
}

int directory_entry__name(const char *path, char **named)
{
	char at[PATH_MAX], target[PATH_MAX];
	ssize_t len = strlen(path);
	int links = 0;

	if (len < PATH_MAX)
		strcpy(at, path);
	while (len < PATH_MAX && links++ < MAX_LINKS &&
	       (len = readlink(at, target, sizeof(target))) > 0) {
		char *slash = strrchr(at, '/');
		size_t directory = *target == '/' || !slash ? 0 : slash + 1 - at;

		if (directory + len >= PATH_MAX)
			break;
		memcpy(at + directory, target, len);
		at[directory + len] = '\0';
	}
	*named = strdup(strlen(path) < PATH_MAX && len < PATH_MAX ? at : path);
	return *named ? 0 : -ENOMEM;
}
