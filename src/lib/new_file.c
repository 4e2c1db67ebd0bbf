// SPDX-License-Identifier: GPL-3.0-or-later
#include "new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

/* fchown() does not change this id. */
#define NO_ID UINT32_MAX

/* The environment is trusted: the caller who set it is root. */
static uint32_t get_id(const char *variable)
{
	const char *text = getenv(variable);
	unsigned long long id;

	if (!text || !*text || strlen(text) > 10 || text[strspn(text, "0123456789")])
		return NO_ID;
	id = strtoull(text, NULL, 10);
	return id < NO_ID ? id : NO_ID;
}

/* Gives a new, empty file to the user who ran sudo. File systems without owners refuse, which is
 * ignored. */
static void give_away(int fd)
{
	uint32_t user = get_id("SUDO_UID");
	int err = 0;

	if (!geteuid() && user && user != NO_ID)
		err = fchown(fd, user, get_id("SUDO_GID"));
	(void)err;
}

int new_file__create(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
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
