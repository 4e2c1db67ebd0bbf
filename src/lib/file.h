/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens, reads and writes files and descriptors, and says who may have written a file. */
#ifndef ALLOCPROF_FILE_H
#define ALLOCPROF_FILE_H

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Opens @path for reading if it is a regular file. FIFOs, which may block, and devices, on which
 * an open may have effects, are not opened. Returns a descriptor that the caller closes, or a
 * negative errno: -EISDIR for a directory, -ENOTSUP for other kinds of file. */
int regular_file__open(const char *path);

/* Does the same for the absolute @path as it is seen by processes whose root is the directory
 * @root, such as /proc/PID/root: links do not lead out of it. */
int regular_file__open_in(const char *root, const char *path);

/* Does the same for the file that @path_fd, opened with O_PATH, refers to, even if another file is
 * at its path by now. */
int regular_file__reopen(int path_fd);

/* Reads @size bytes, by several read(2) if necessary. Returns 0; -ENODATA if the file ends before;
 * or the negative errno of read(2). After an error the contents of @to are undefined. */
int fd__read_all(int fd, void *to, size_t size);

/* Does the same from @offset on, by pread(2). Returns -EINVAL if no file can have that offset. */
int fd__read_all_at(int fd, void *to, size_t size, __u64 offset);

/* Writes @size bytes, by several write(2) if necessary. Returns 0 or a negative errno. */
int fd__write_all(int fd, const void *from, size_t size);

/* Does the same from @offset on, by pwrite(2). */
int fd__write_all_at(int fd, const void *from, size_t size, __u64 offset);

/*
 * Reads the first @most_bytes of the file @fd, or of the bytes that come from a FIFO. A caller
 * that limits the size passes its limit plus one. *@text, which the caller frees, has *@size_bytes
 * bytes, which may include NULs, and a NUL behind them. Returns 0, -ENOMEM, or the negative errno
 * of read(2).
 */
int text_file__read(int fd, size_t most_bytes, char **text, size_t *size_bytes);

/* Returns whether the file is root's and nobody else may write to it, according to its file
 * system. */
static inline bool file_owner__is_only_root(const struct stat *st)
{
	return !st->st_uid && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Returns whether the directory is @owner's and nobody else can replace entries in it. With
 * @may_be_shared it may also be root's, and other users may create entries of their own, as in
 * /tmp.
 */
bool directory__is_safe(int directory, uid_t owner, bool may_be_shared);

#endif
