/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Works on paths as text, and finds where a path leads. */
#ifndef ALLOCPROF_PATH_H
#define ALLOCPROF_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Returns the part of @path after its last slash. */
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

/* The place that a path leads to without links of other users. It matters because root also writes
 * below directories that other users may change. */
struct directory_entry {
	/* Opened with O_PATH: it stays the same directory if someone renames a directory above it. */
	int directory;
	char name[NAME_MAX + 1];
};

/*
 * Follows the links of @path, in its middle and at its end, if root, this user, or the user who
 * called sudo has made them. @st describes the entry. It is a link only if it is one of /proc,
 * which leads to an open file that need not have a path. Returns 0, and the caller releases
 * @entry; -ENOENT if nothing is there, and the caller releases @entry, which is valid unless
 * entry->directory is -1; -ELOOP if there are too many links, or one of another user; or another
 * negative errno.
 */
int directory_entry__find(const char *path, struct directory_entry *entry, struct stat *st);
void directory_entry__release(struct directory_entry *entry);

/* Follows the links at the end of @path and writes the path that they lead to, for callers that
 * look for files beside it. The caller frees *@named. Returns 0 or -ENOMEM. */
int directory_entry__name(const char *path, char **named);

/* Returns whether @user is root, this user, or the user who called sudo. */
bool directory_entry__is_ours(uid_t user);

#endif
