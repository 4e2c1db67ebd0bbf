/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files that we create. Those of root that sudo made of another user are that user's from the beginning, so
 * that they can be read without sudo. Whatever was there before stays whose it is, also where a hostile
 * directory has a link in its place.
 */
#ifndef ALLOCPROF_NEW_FILE_H
#define ALLOCPROF_NEW_FILE_H

#include <sys/types.h>

/* Creates @path for writing, which must not be there. A file descriptor or a negative errno, -EEXIST also of
 * a link. */
int new_file__create(const char *path, mode_t mode);
/* The same for one of mode 0600 whose name ends with XXXXXX, which become something unused. */
int new_file__create_unique(char *path);
/* Makes a directory. 0 or a negative errno. */
int new_file__make_directory(const char *path, mode_t mode);

#endif
