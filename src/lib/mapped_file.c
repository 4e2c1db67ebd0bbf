// SPDX-License-Identifier: GPL-3.0-or-later
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file.h"
#include "proc.h"

bool file_identity__is_same(const struct file_identity *a, const struct file_identity *b)
{
	return a->inode == b->inode && a->device == b->device &&
	       (a->generation == b->generation || !a->generation || !b->generation);
}

/* tmpfs and ext4 reuse inode numbers at once; the generation differs. */
static __u32 generation_of(int fd)
{
	long generation = 0;

	/* The ioctl is declared with long, but file systems write an int. */
	return ioctl(fd, FS_IOC_GETVERSION, &generation) ? 0 : (__u32)generation;
}

int file_identity__of(int fd, struct file_identity *out)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*out = (struct file_identity){
		.inode = st.st_ino,
		.device = file_identity__device(major(st.st_dev), minor(st.st_dev)),
		.generation = generation_of(fd),
	};
	return 0;
}

struct file_identity file_identity__of_mapping(const struct proc_mapping *mapping)
{
	return (struct file_identity){
		.inode = mapping->inode,
		.device = file_identity__device(mapping->major, mapping->minor),
	};
}

struct shown_at {
	__u64 address;
	struct file_identity *out;
};

static int is_shown_at(void *context, const struct proc_mapping *mapping)
{
	const struct shown_at *wanted = context;

	if (mapping->start != wanted->address)
		return 0;
	*wanted->out = file_identity__of_mapping(mapping);
	return 1;
}

/* Writes the identity that /proc/self/maps shows of the file mapped at @address. Returns 0 or a
 * negative errno. */
static int shown_at(const void *address, struct file_identity *out)
{
	struct shown_at wanted = { (uintptr_t)address, out };
	int err = proc_maps__each(0, is_shown_at, &wanted);

	return err < 0 ? err : err ? 0 : -ENOENT;
}

static bool file_identities__have(const struct file_identities *identities,
				  const struct file_identity *identity)
{
	for (size_t i = 0; i < identities->n; i++)
		if (file_identity__is_same(&identities->of[i], identity))
			return true;
	return false;
}

/* Returns whether @wanted is an identity of the open file. Collects the file's identities in
 * *@out, cheapest source first, and stops at the one that matches. */
static bool file_identity__has(int fd, const struct file_identity *wanted,
			       const struct file_identifier *identifier,
			       struct file_identities *out)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *mapped;

	out->n = 0;
	if (file_identity__of(fd, &out->of[out->n++]))
		return false;
	if (file_identities__have(out, wanted))
		return true;
	mapped = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapped == MAP_FAILED)
		return false;
	if (identifier->identify &&
	    !identifier->identify(mapped, &out->of[out->n], identifier->context))
		out->n++;
	if (!file_identities__have(out, wanted) && !shown_at(mapped, &out->of[out->n]))
		out->n++;
	munmap(mapped, page);
	return file_identities__have(out, wanted);
}

/* Returns @fd if it is the file; closes it otherwise. Returns -EACCES if @fd is an error that says
 * that the file may not be read, else @otherwise. */
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
	/* Names that the kernel makes up, such as "//anon" and "[heap]", are no paths. */
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
