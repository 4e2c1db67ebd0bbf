/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates files. If root runs under sudo, the user who called sudo owns them from the start. Files
 * that already exist keep their owner, even if a hostile user puts a link in their place. */
#ifndef ALLOCPROF_NEW_FILE_H
#define ALLOCPROF_NEW_FILE_H

#include <sys/types.h>

#include "path.h"

/*
 * Opens the existing file @path for writing and keeps its contents. Links are followed as by
 * directory_entry__find(). In a directory that is sticky and that others may write to, files of
 * other users are not opened, either, as with the kernel's fs.protected_symlinks and
 * fs.protected_regular. Returns a file descriptor; -EACCES, or another negative errno.
 */
int new_file__open_existing(const char *path);

/*
 * A file that gets its path only when it is complete. If this process is killed before, it leaves
 * no file, except on file systems that have no files without names (O_TMPFILE).
 */
struct new_file {
	int fd; /* to read and write; -1: there is none */
	struct directory_entry entry;
	/* Temporary name in the directory of its path; "": it has none. */
	char temporary[NAME_MAX + 1];
	bool is_old; /* the path's existing file, which is written in place */
};
/* Value of a file that has not been begun, or was released. */
#define NEW_FILE_NONE ((struct new_file){ .fd = -1, .entry.directory = -1 })

/*
 * Begins a file with mode 0600 that will be at @path. Returns 0, and the caller releases @file;
 * -EISDIR; -EINVAL if a file that must not be replaced is there, which is no regular file or an
 * open file that only /proc leads to; or an error of directory_entry__find().
 */
int new_file__begin(struct new_file *file, const char *path);
/*
 * Does the same with the mode and owner of the existing file, or else with the usual mode of new
 * files. Pipes, devices, open files, and files that can be written but not replaced, because of
 * their directory or owner, are opened as they are.
 */
int new_file__begin_output(struct new_file *file, const char *path);
/* Cuts off the present contents of a file that was opened as it is. To be called before the first
 * write. Returns 0 or a negative errno. */
int new_file__empty(struct new_file *file);
/* Moves the file to its path. Returns 0 or a negative errno. */
int new_file__finish(struct new_file *file);
/* Does the same, and renames a file that was there to "<name>.old". */
int new_file__finish_keeping(struct new_file *file);
/* Gives the file a name beside its path, file->temporary, for good. Returns 0 or a negative errno. */
int new_file__keep(struct new_file *file);
/* Closes the file, and removes it if it has not been moved to its path. */
void new_file__release(struct new_file *file);
/* Makes the directory @path. Returns 0 or a negative errno. */
int new_file__make_directory(const char *path, mode_t mode);

/* Returns why a file cannot be written, for a sentence: strerror() of @err, which one of the
 * functions above returned, or words about links. */
const char *new_file__reason(int err);

#endif
