/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out which file a mapping is of: identities of files, and opening a file that another
 * process has mapped. */
#ifndef ALLOCPROF_MAPPED_FILE_H
#define ALLOCPROF_MAPPED_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct proc_mapping;

/*
 * Identifies a file across the kernel's interfaces. On most file systems stat(2), /proc/PID/maps,
 * mmap events and BPF programs agree on device and inode. On overlayfs (containers) and btrfs they
 * do not: stat(2) reports an anonymous device, BPF programs report the underlying file, maps shows
 * the overlay's file, and events report one or the other, depending on the kernel (6.18 changed
 * it).
 */
struct file_identity {
	__u64 inode;
	__u32 device;	  /* the kernel's dev_t: major << 20 | minor */
	__u32 generation; /* of the inode; 0: unknown */
};

/* Returns the kernel's dev_t of a device. */
static inline __u32 file_identity__device(unsigned int major, unsigned int minor)
{
	return major << 20 | minor;
}

/* Returns the device and inode that /proc/PID/maps shows of the mapping. */
struct file_identity file_identity__of_mapping(const struct proc_mapping *mapping);

/* A callback that has a BPF program report which file is mapped at @address of this process. It
 * returns 0 or a negative errno. @identify is NULL if no BPF programs are loaded. */
struct file_identifier {
	int (*identify)(const void *address, struct file_identity *identity, void *context);
	void *context;
};

#define FILE_IDENTITIES 3

/* Returns whether both identities are the same file's. Device numbers are unique, so identities of
 * different sources match only if they mean the same file. */
bool file_identity__is_same(const struct file_identity *a, const struct file_identity *b);

/* The identities of an open file as far as they are known. */
struct file_identities {
	struct file_identity of[FILE_IDENTITIES];
	size_t n;
};

/* Finds the identity by stat(2). Returns 0, -EINVAL if the file is not regular, or another
 * negative errno. */
int file_identity__of(int fd, struct file_identity *out);

/* A file that another process has mapped. */
struct mapped_file {
	__u32 pid;
	__u64 start, end;	       /* addresses of the mapping, which may be gone */
	struct file_identity identity; /* identity from any source */
	const char *path;	       /* path in the process's root; NULL if unknown */
};

/*
 * Opens the file for reading by /proc/PID/map_files or, if the mapping is gone or replaced, by the
 * path in the process's root or in this process's. *@identities gets the identities of the opened
 * file. Returns the descriptor; -EACCES if one of these may not be read; or -ENOENT if none is the
 * file.
 */
int mapped_file__open(const struct mapped_file *file, const struct file_identifier *identifier,
		      struct file_identities *identities);

/* Writes the path by which @fd was opened, even if the file has been deleted; "" if the kernel
 * does not report one. */
void mapped_file__path(int fd, char *path, size_t size);

/* Writes to @own the path by which this process finds the file @fd. Another process, whose root
 * may differ, knows the file as @path. Writes @path if there is no such path. */
void mapped_file__own_path(int fd, const char *path, char *own, size_t size);

#endif
