// SPDX-License-Identifier: GPL-3.0-or-later
#include "file_identity.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc_maps.h"

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

/* The identity in /proc/self/maps of the file mapped at @address. */
static int shown_at(const void *address, struct file_identity *out)
{
	struct shown_at wanted = { (uintptr_t)address, out };
	int err = proc_maps__each(0, is_shown_at, &wanted);

	return err < 0 ? err : err ? 0 : -ENOENT;
}

bool file_identities__have(const struct file_identities *identities,
			   const struct file_identity *identity)
{
	for (size_t i = 0; i < identities->n; i++)
		if (file_identity__is_same(&identities->of[i], identity))
			return true;
	return false;
}

bool file_identity__has(int fd, const struct file_identity *wanted,
			const struct file_identifier *identifier, struct file_identities *out)
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
