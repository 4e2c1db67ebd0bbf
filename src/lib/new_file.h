/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates files. If root runs under sudo, the user who called sudo owns them from the start. Files
 * that already exist keep their owner, also if a hostile directory puts a link in their place. */
#ifndef ALLOCPROF_NEW_FILE_H
#define ALLOCPROF_NEW_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Creates @path for writing; it must not exist. A file descriptor or a negative errno, -EEXIST also
 * for a link. */
int new_file__create(const char *path, mode_t mode);
/* The same with mode 0600; the final XXXXXX of the name is replaced to make it unique. */
int new_file__create_unique(char *path);
/*
 * Opens the existing @path for writing and keeps its contents. Links are followed if root, this user, or who called sudo
 * has made them; in a directory that is sticky and open to others, files of others are not opened either, as with the
 * kernel's fs.protected_symlinks and fs.protected_regular. A file descriptor; -EACCES, or another negative errno.
 */
int new_file__open_existing(const char *path);
/*
 * Finds what a new file has to be renamed to in order to be at @path: @path itself, or what its links lead to, which are
 * followed as by new_file__open_existing(). *@place is to be freed. 0; -EISDIR; -EINVAL: what is there is no regular
 * file, or an open one that only /proc leads to, and must not be replaced; or another negative errno.
 */
int new_file__find_place(const char *path, char **place);

/*
 * A file that takes its place when it is complete. What ends us before leaves nothing, except in file systems that have
 * no files without names (O_TMPFILE).
 */
struct new_file {
	int fd; /* to write to */
	char *place;
	char *temporary; /* its name beside the place; NULL: it has none */
};

/* With mode 0600. 0, and @file is to be released; or as new_file__find_place(). */
int new_file__begin(struct new_file *file, const char *path);
/* Moves it to its place. 0 or a negative errno. */
int new_file__finish(struct new_file *file);
/* Closes it, and removes it if it has not come to its place. */
void new_file__release(struct new_file *file);
/* Whether @user is root, this user, or who called sudo. */
bool new_file__is_ours(uid_t user);
/* Makes a directory. 0 or a negative errno. */
int new_file__make_directory(const char *path, mode_t mode);

#endif
