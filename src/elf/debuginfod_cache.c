// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens the cache of debug files that elfutils' client uses, as the user to whom it belongs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "confinement.h"
#include "debuginfod_internal.h"
#include "file.h"
#include "user.h"
#include "worker.h"

/* The variable by which elfutils' client finds its cache. */
#define CACHE_VARIABLE "DEBUGINFOD_CACHE_PATH"
/* The directory in it that belongs to the user nobody. */
#define OWN_NAME "allocprof-fetched"

bool debuginfod_cache__is_roots(void)
{
	uid_t uid;
	gid_t gid;

	return !geteuid() && !sudo_user__find(&uid, &gid);
}

/* Finds the cache as elfutils' client does, but for a directory that early versions of it used. -ENAMETOOLONG; -EINVAL: the
 * path is not absolute. */
static int find_path(char path[PATH_MAX])
{
	const char *chosen = getenv(CACHE_VARIABLE), *base = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int size;

	if (chosen && *chosen)
		size = snprintf(path, PATH_MAX, "%s", chosen);
	else if (base && *base)
		size = snprintf(path, PATH_MAX, "%s/debuginfod_client", base);
	else if (home && *home)
		size = snprintf(path, PATH_MAX, "%s/.cache/debuginfod_client", home);
	else
		size = snprintf(path, PATH_MAX, "/var/cache/debuginfod_client");
	if (size >= PATH_MAX)
		return -ENAMETOOLONG;
	return *path == '/' ? 0 : -EINVAL;
}

/* Opens the cache if each part of its path is a directory of root's, and none is a link, which others might have made. If
 * @make, it makes those that are missing. A descriptor, or a negative errno. */
static int open_cache(bool make)
{
	char path[PATH_MAX], *rest = NULL;
	int fd, err = find_path(path);

	if (err)
		return err;
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	for (char *name = strtok_r(path, "/", &rest); fd >= 0 && name;
	     name = strtok_r(NULL, "/", &rest)) {
		int parent = fd;

		if (make)
			mkdirat(parent, name, 0700);
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = fd < 0 ? -errno : 0;
		close(parent);
		if (fd >= 0 && !directory__is_safe(fd, 0, true)) {
			close(fd);
			return -EPERM;
		}
	}
	return fd < 0 ? err : fd;
}

/* Opens the directory of the user nobody. It gives away none but one that it has made. */
static int open_own(int cache)
{
	bool is_new = !mkdirat(cache, OWN_NAME, 0700);
	int fd = openat(cache, OWN_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	/* The group, which is root's, may write, too: where root cannot become another user, it comes by that. */
	if (is_new && !fchown(fd, CONFINED_NOBODY, 0) && !fchmod(fd, 0770))
		return fd;
	if (!fstat(fd, &st) && st.st_uid == CONFINED_NOBODY && !st.st_gid && !(st.st_mode & 07))
		return fd;
	close(fd);
	return -EPERM;
}

void debuginfod_cache__enter(void)
{
	_cleanup_(close_fd) int cache = open_cache(true), own = -1;
	struct stat st;

	/* In one that others may write to, they would know whose this is. */
	if (cache < 0 || fstat(cache, &st) || st.st_mode & 022)
		return;
	own = open_own(cache);
	if (own < 0 || fchdir(own))
		return;
	/* The user nobody need not be able to come there by its path. */
	setenv(CACHE_VARIABLE, ".", 1);
}

int debuginfod_cache__open(const char *build_id)
{
	_cleanup_(close_fd) int cache = -1, directory = -1, place = -1;
	int fd;

	if (build_id[strspn(build_id, "0123456789abcdef")])
		return -ENOENT;
	cache = open_cache(false);
	if (cache < 0)
		return -ENOENT;
	directory = openat(cache, build_id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0 || !directory__is_safe(directory, 0, true))
		return -ENOENT;
	place = openat(directory, "debuginfo", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	fd = place < 0 ? -ENOENT : regular_file__reopen(place);
	return fd < 0 ? fd : worker__only_elf(fd);
}
