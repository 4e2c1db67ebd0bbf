/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Paths as text, and where one leads. */
#ifndef ALLOCPROF_PATH_H
#define ALLOCPROF_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* The part of @path after its last slash. */
static inline const char *path__name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns whether a part of @path is "..". */
static inline bool path__has_parent(const char *path)
{
	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		size_t size = strcspn(path, "/");

		if (size == 2 && !strncmp(path, "..", 2))
			return true;
		path += size;
	}
	return false;
}

/* Where a path leads, without a link of another user's: root also writes below directories that others may change. */
struct directory_entry {
	int directory; /* O_PATH; whoever renames a directory above it does not move it elsewhere */
	char name[NAME_MAX + 1];
};

/*
 * Follows the links of @path, in its middle and at its end, if root, this user, or who called sudo has made them. @st
 * describes what the entry is: a link only where /proc has it, which leads to an open file that need not have a path.
 * 0, and @entry is to be released; -ENOENT: likewise, but nothing is there if entry->directory is not -1; -ELOOP: a link
 * of another user's, or too many; or another negative errno.
 */
int directory_entry__find(const char *path, struct directory_entry *entry, struct stat *st);
void directory_entry__release(struct directory_entry *entry);

/* What the links at the end of @path lead to, by name: for what is beside it. *@named is to be freed. 0 or -ENOMEM. */
int directory_entry__name(const char *path, char **named);

/* Whether @user is root, this user, or who called sudo. */
bool directory_entry__is_ours(uid_t user);

#endif
