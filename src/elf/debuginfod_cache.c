// SPDX-License-Identifier: GPL-3.0-or-later
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
#include "sudo_user.h"
#include "worker.h"

/* The variable by which elfutils' client finds its cache. */
#define CACHE_VARIABLE "DEBUGINFOD_CACHE_PATH"

bool debuginfod_cache__is_roots(void)
{
	uid_t uid;
	gid_t gid;

	return !geteuid() && !sudo_user__find(&uid, &gid);
}

/* As elfutils' client finds it; false if the path is too long. */
static bool find_path(char path[PATH_MAX])
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
	return size < PATH_MAX;
}

/* Makes the directories of @path that are missing, and opens the last. */
static int open_directory(char path[PATH_MAX])
{
	int fd;

	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_roots_alone(int directory)
{
	struct stat st;

	return !fstat(directory, &st) && !st.st_uid && !(st.st_mode & 022);
}

void debuginfod_cache__enter(void)
{
	_cleanup_(close_fd) int base = -1, own = -1;
	char path[PATH_MAX];

	if (!find_path(path))
		return;
	base = open_directory(path);
	/* Others could put another of root's directories in the place of the one that is given away. */
	if (base < 0 || !is_roots_alone(base))
		return;
	mkdirat(base, "allocprof", 0700);
	own = openat(base, "allocprof", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (own < 0 || fchown(own, CONFINED_NOBODY, CONFINED_NOBODY) || fchdir(own))
		return;
	/* nobody need not be able to come there by its path. */
	setenv(CACHE_VARIABLE, ".", 1);
}

int debuginfod_cache__open(const char *build_id)
{
	char path[PATH_MAX], file[PATH_MAX];

	if (!find_path(path) || build_id[strspn(build_id, "0123456789abcdef")] ||
	    snprintf(file, sizeof(file), "%s/%s/debuginfo", path, build_id) >= PATH_MAX)
		return -ENOENT;
	return worker__open_file(file);
}
