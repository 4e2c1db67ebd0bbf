/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a path leads, without a link of another user's: root also writes below directories that others may change. */
#ifndef ALLOCPROF_FILE_PLACE_H
#define ALLOCPROF_FILE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct file_place {
	int directory; /* O_PATH; whoever renames a directory above it does not move it elsewhere */
	char name[NAME_MAX + 1];
};

/*
 * Follows the links of @path, in its middle and at its end, if root, this user, or who called sudo has made them. @st
 * describes what is at the place: a link only where /proc has it, which leads to an open file that need not have a path.
 * 0, and @place is to be released; -ENOENT: likewise, but nothing is there if place->directory is not -1; -ELOOP: a link
 * of another user's, or too many; or another negative errno.
 */
int file_place__find(const char *path, struct file_place *place, struct stat *st);
void file_place__release(struct file_place *place);

/* What the links at the end of @path lead to, by name: for what is beside it. *@named is to be freed. 0 or -ENOMEM. */
int file_place__name(const char *path, char **named);

/* Whether @user is root, this user, or who called sudo. */
bool file_place__is_ours(uid_t user);

#endif
