/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which file a mapping is of: identities of files, and opening what another process has mapped. */
#ifndef ALLOCPROF_MAPPED_FILE_H
#define ALLOCPROF_MAPPED_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct proc_mapping;

/*
 * Identifies files across the kernel's interfaces. On most file systems stat(2), /proc/PID/maps,
 * mmap events and BPF programs agree on device and inode. On overlayfs (containers) and btrfs they
 * do not: stat(2) reports an anonymous device, BPF programs the underlying file, maps the
 * overlay's, and events either, depending on the kernel (6.18 changed it).
 */
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

/* The device and inode that /proc/PID/maps shows. */
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

/* A file that another process has mapped. */
struct mapped_file {
	__u32 pid;
	__u64 start, end;	       /* of the mapping, which may be gone */
	struct file_identity identity; /* from whichever source */
	const char *path;	       /* in the process's root; NULL if unknown */
};

/*
 * Opens it for reading: by /proc/PID/map_files or, if the mapping is gone or replaced, by the path
 * in the process's root or ours. *@identities: those of the opened file. -EACCES if one of these
 * may not be read, -ENOENT if none is the file.
 */
int mapped_file__open(const struct mapped_file *file, const struct file_identifier *identifier,
		      struct file_identities *identities);

/* The path by which @fd was opened, also of a deleted file. *@path is "" if the kernel does not
 * report one. */
void mapped_file__path(int fd, char *path, size_t size);

/* The path by which this process finds the file @fd, which another one knows as @path, perhaps in a root of its own; @path if
 * there is none. */
void mapped_file__own_path(int fd, const char *path, char *own, size_t size);

#endif
