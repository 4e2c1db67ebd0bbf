/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who can have written a file, or what is in a directory. */
#ifndef ALLOCPROF_FILE_OWNER_H
#define ALLOCPROF_FILE_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

/* Returns whether the file is root's and nobody else may write to it, by what its file system says. */
static inline bool file_owner__is_only_root(const struct stat *st)
{
	return !st->st_uid && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Returns whether the directory is @owner's and nobody else can replace entries in it. With @may_be_shared it may also be root's, and
 * others may make entries of their own, as in /tmp.
 */
bool directory__is_safe(int directory, uid_t owner, bool may_be_shared);

#endif
