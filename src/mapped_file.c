// SPDX-License-Identifier: GPL-3.0-or-later
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Inode numbers are used again at once, by tmpfs and ext4 too: the generation tells. */
static bool has_generation(int fd, __u32 generation)
{
	long answer = 0;

	/* Despite its name's long, file systems write an int. */
	if (!generation || ioctl(fd, FS_IOC_GETVERSION, &answer))
		return true;
	return (__u32)answer == generation;
}

/* On overlayfs and btrfs stat(2) tells of another device than the kernel has. */
static bool hides_device(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

/*
 * Whether @fd is the file. Where the devices cannot be compared the inode's number may differ too:
 * @trusted says whether the file is believed.
 */
static bool is_same(int fd, const struct mapped_file *file, bool trusted)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if ((major(st.st_dev) << 20 | minor(st.st_dev)) == file->device)
		return st.st_ino == file->inode && has_generation(fd, file->generation);
	return trusted || (hides_device(fd) && st.st_ino == file->inode);
}

static int open_if_same(const char *name, const struct mapped_file *file, bool trusted)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && is_same(fd, file, trusted))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

int mapped_file__open(const struct mapped_file *file)
{
	char name[PATH_MAX + 64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%u/map_files/%llx-%llx", file->pid, file->start,
		 file->end);
	fd = open_if_same(name, file, true);
	/* The kernel's "//anon" and "[heap]" are no paths. */
	if (fd >= 0 || !file->path || file->path[0] != '/' || file->path[1] == '/')
		return fd;
	snprintf(name, sizeof(name), "/proc/%u/root%s", file->pid, file->path);
	fd = open_if_same(name, file, false);
	return fd >= 0 ? fd : open_if_same(file->path, file, false);
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
