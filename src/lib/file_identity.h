/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What tells files apart, and how the kernel names one and the same file. On most file systems
 * stat(2), /proc/PID/maps, mapping events and the programs say the same; on overlayfs (containers) and
 * btrfs up to three things: stat(2) a device of its own making, the programs the file that lies
 * beneath, maps the overlay's, and events the one or, on Linux 6.18, the other.
 */
#ifndef ALLOCPROF_FILE_IDENTITY_H
#define ALLOCPROF_FILE_IDENTITY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct proc_mapping;

struct file_identity {
	__u64 inode;
	__u32 device;	  /* the kernel's dev_t: major << 20 | minor */
	__u32 generation; /* of the inode number; 0: not known */
};

/* The kernel's dev_t. */
static inline __u32 file_identity__device(unsigned int major, unsigned int minor)
{
	return major << 20 | minor;
}

/* As /proc/PID/maps shows it. */
struct file_identity file_identity__of_mapping(const struct proc_mapping *mapping);

/* Asks the programs which file they see where @address of our own memory is. 0 or negative errno. NULL
 * where there are no programs. */
struct file_asker {
	int (*ask)(const void *address, struct file_identity *identity, void *context);
	void *context;
};

#define FILE_IDENTITIES 3

/* Whether both name one file. No device number is in use twice, so of different kinds they never do. */
bool file_identity__is_same(const struct file_identity *a, const struct file_identity *b);

/* What an open file goes by, as far as it was asked. */
struct file_identities {
	struct file_identity of[FILE_IDENTITIES];
	size_t n;
};

bool file_identities__have(const struct file_identities *identities,
			   const struct file_identity *identity);

/* What stat(2) says; -EINVAL: it is no regular file. */
int file_identity__of(int fd, struct file_identity *out);

/*
 * Whether the open file goes by @wanted. *@out is what was found on the way, where that is more than
 * @wanted itself: the dearer questions are asked last, and only on file systems that take them.
 */
bool file_identity__has(int fd, const struct file_identity *wanted, const struct file_asker *asker,
			struct file_identities *out);

#endif
