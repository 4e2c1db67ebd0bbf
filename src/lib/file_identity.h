/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Identifies files across the kernel's interfaces. On most file systems stat(2), /proc/PID/maps,
 * mmap events and BPF programs agree on device and inode. On overlayfs (containers) and btrfs they
 * do not: stat(2) reports an anonymous device, BPF programs the underlying file, maps the
 * overlay's, and events either, depending on the kernel (6.18 changed it).
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
	__u32 generation; /* of the inode; 0: unknown */
};

/* The kernel's dev_t. */
static inline __u32 file_identity__device(unsigned int major, unsigned int minor)
{
	return major << 20 | minor;
}

/* As /proc/PID/maps shows it. */
struct file_identity file_identity__of_mapping(const struct proc_mapping *mapping);

/* Callback that has a BPF program report which file is mapped at @address of this process. 0 or a
 * negative errno. NULL if no programs are loaded. */
struct file_identifier {
	int (*identify)(const void *address, struct file_identity *identity, void *context);
	void *context;
};

#define FILE_IDENTITIES 3

/* Whether both name one file. Device numbers are unique, so identities of different sources match
 * only if they mean the same file. */
bool file_identity__is_same(const struct file_identity *a, const struct file_identity *b);

/* The identities of an open file that are known so far. */
struct file_identities {
	struct file_identity of[FILE_IDENTITIES];
	size_t n;
};

bool file_identities__have(const struct file_identities *identities,
			   const struct file_identity *identity);

/* The identity from stat(2); -EINVAL if it is no regular file. */
int file_identity__of(int fd, struct file_identity *out);

/* Whether @wanted is an identity of the open file. Collects the identities in *@out, cheapest
 * source first, and stops at the one that matches. */
bool file_identity__has(int fd, const struct file_identity *wanted,
			const struct file_identifier *identifier, struct file_identities *out);

#endif
