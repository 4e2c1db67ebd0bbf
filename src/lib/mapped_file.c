// SPDX-License-Identifier: GPL-3.0-or-later
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regular_file.h"

/* Takes @fd, which may be an error, over if it is the file. Else -EACCES if it may not be read, or @otherwise. */
static int take_if_same(int fd, const struct mapped_file *file,
			const struct file_identifier *identifier,
			struct file_identities *identities, int otherwise)
{
	if (fd >= 0 && file_identity__has(fd, &file->identity, identifier, identities))
		return fd;
	if (fd >= 0)
		close(fd);
	return fd == -EACCES ? -EACCES : otherwise;
}

int mapped_file__open(const struct mapped_file *file, const struct file_identifier *identifier,
		      struct file_identities *identities)
{
	char name[80];
	int fd;

	snprintf(name, sizeof(name), "/proc/%u/map_files/%llx-%llx", file->pid, file->start,
		 file->end);
	fd = take_if_same(regular_file__open(name), file, identifier, identities, -ENOENT);
	/* The kernel's "//anon" and "[heap]" are no paths. */
	if (fd >= 0 || !file->path || file->path[0] != '/' || file->path[1] == '/')
		return fd;
	snprintf(name, sizeof(name), "/proc/%u/root", file->pid);
	fd = take_if_same(regular_file__open_in(name, file->path), file, identifier, identities,
			  fd);
	return fd >= 0 ? fd
		       : take_if_same(regular_file__open(file->path), file, identifier, identities,
				      fd);
}

void mapped_file__path(int fd, char *path, size_t size)
{
	static const char deleted[] = " (deleted)";
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, size - 1);
	if (len < 0)
		len = 0;
	path[len] = '\0';
	if ((size_t)len > strlen(deleted) && !strcmp(path + len - strlen(deleted), deleted))
		path[len - strlen(deleted)] = '\0';
}

static bool is_file(const char *path, const struct stat *file)
{
	struct stat st;

	return !fstatat(AT_FDCWD, path, &st, AT_NO_AUTOMOUNT) && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino;
}

void mapped_file__own_path(int fd, const char *path, char *own, size_t size)
{
	struct stat st;

	if (!fstat(fd, &st) && !is_file(path, &st)) {
		mapped_file__path(fd, own, size);
		if (is_file(own, &st))
			return;
	}
	snprintf(own, size, "%s", path);
}
