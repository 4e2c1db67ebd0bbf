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
/* Whether @user is root, this user, or who called sudo. */
bool new_file__is_ours(uid_t user);
/* Makes a directory. 0 or a negative errno. */
int new_file__make_directory(const char *path, mode_t mode);

#endif
