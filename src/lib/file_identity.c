// SPDX-License-Identifier: GPL-3.0-or-later
#include "file_identity.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cleanup.h"

bool file_identity__is_same(const struct file_identity *a, const struct file_identity *b)
{
	return a->inode == b->inode && a->device == b->device &&
	       (a->generation == b->generation || !a->generation || !b->generation);
}

/* Inode numbers are used again at once, by tmpfs and ext4 too: the generation tells. */
static __u32 generation_of(int fd)
{
	long generation = 0;

	/* Despite its name's long, file systems write an int. */
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
		.device = major(st.st_dev) << 20 | minor(st.st_dev),
		.generation = generation_of(fd),
	};
	return 0;
}

/* As /proc/PID/maps shows the file that is mapped at @address of our own memory. */
static int shown_at(const void *address, struct file_identity *out)
{
	_cleanup_(close_file) FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_(free_ptr) char *line = NULL;
	unsigned int major, minor;
	unsigned long long start, inode;
	size_t capacity = 0;

	if (!maps)
		return -errno;
	while (getline(&line, &capacity, maps) > 0) {
		if (sscanf(line, "%llx-%*x %*s %*x %x:%x %llu", &start, &major, &minor, &inode) !=
			    4 ||
		    start != (uintptr_t)address)
			continue;
		*out = (struct file_identity){ .inode = inode, .device = major << 20 | minor };
		return 0;
	}
	return -ENOENT;
}

bool file_identities__have(const struct file_identities *identities,
			   const struct file_identity *identity)
{
	for (size_t i = 0; i < identities->n; i++)
		if (file_identity__is_same(&identities->of[i], identity))
			return true;
	return false;
}

bool file_identity__has(int fd, const struct file_identity *wanted, const struct file_asker *asker,
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
	if (asker->ask && !asker->ask(mapped, &out->of[out->n], asker->context))
		out->n++;
	if (!file_identities__have(out, wanted) && !shown_at(mapped, &out->of[out->n]))
		out->n++;
	munmap(mapped, page);
	return file_identities__have(out, wanted);
}
