/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates files. If root runs under sudo, the user who called sudo owns them from the start. Files
 * that already exist keep their owner, also if a hostile directory puts a link in their place. */
#ifndef ALLOCPROF_NEW_FILE_H
#define ALLOCPROF_NEW_FILE_H

#include <sys/types.h>

#include "path.h"

/*
 * Opens the existing @path for writing and keeps its contents. Links are followed as by directory_entry__find(); in a
 * directory that is sticky and open to others, files of others are not opened either, as with the
 * kernel's fs.protected_symlinks and fs.protected_regular. A file descriptor; -EACCES, or another negative errno.
 */
int new_file__open_existing(const char *path);

/*
 * A file that takes its place when it is complete. What ends us before leaves nothing, except in file systems that have
 * no files without names (O_TMPFILE).
 */
struct new_file {
	int fd; /* to read and write; -1: there is none */
	struct directory_entry entry;
	char temporary[NAME_MAX + 1]; /* its name beside the entry; "": it has none */
	bool is_old;		      /* the file that was there, to be written in place */
};
/* A file that has not been begun, or was released. */
#define NEW_FILE_NONE ((struct new_file){ .fd = -1, .entry.directory = -1 })

/*
 * Begins a file that is to be at @path, with mode 0600. 0, and @file is to be released; -EISDIR; -EINVAL: what is there is
 * no regular file, or an open one that only /proc leads to, and must not be replaced; or as directory_entry__find().
 */
int new_file__begin(struct new_file *file, const char *path);
/*
 * The same with the mode and owner of the file that is there, or the mode that new files have. A pipe, a device, an open
 * file, and what cannot be replaced but written (directory and owner forbid it) are opened as they are.
 */
int new_file__begin_output(struct new_file *file, const char *path);
/* To be called before the first write: cuts off what such a file has had until now. 0 or a negative errno. */
int new_file__empty(struct new_file *file);
/* Moves it to its path. 0 or a negative errno. */
int new_file__finish(struct new_file *file);
/* The same; what was there becomes "<name>.old". */
int new_file__finish_keeping(struct new_file *file);
/* Gives it a name beside its path, file->temporary, for good. 0 or a negative errno. */
int new_file__keep(struct new_file *file);
/* Closes the file, and removes it if it has not been given its path. */
void new_file__release(struct new_file *file);
/* Makes a directory. 0 or a negative errno. */
int new_file__make_directory(const char *path, mode_t mode);

/* Why a file cannot be written, for a sentence: strerror() of @err, a result of the functions above, or what is true of links. */
const char *new_file__reason(int err);

#endif
