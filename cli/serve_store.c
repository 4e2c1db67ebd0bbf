// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps copies of a recording in a directory. */
#include "serve_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "data_file.h"
#include "error.h"
#include "new_file.h"
#include "profile.h"

#define DIGITS "0123456789"
/* Names are serve-0000000012-20261130T061000Z.data: in the order of time by their numbers. */
#define NUMBER_DIGITS 10
#define MOST_NUMBER   9999999999ULL

struct kept {
	__u64 number, bytes;
	char name[64];
};

struct list {
	struct kept *files;
	size_t n, room;
	__u64 bytes;
};

/* Returns the number in a file's name; 0 if it is no file of ours. */
static __u64 number_of(const char *name)
{
	const char *prefix = "serve-", *at = name + strlen(prefix);

	if (strlen(name) >= sizeof(((struct kept *)0)->name) ||
	    strncmp(name, prefix, strlen(prefix)) || strspn(at, DIGITS) != NUMBER_DIGITS ||
	    at[NUMBER_DIGITS] != '-' || strcmp(name + strlen(name) - strlen(".data"), ".data") != 0)
		return 0;
	return strtoull(at, NULL, 10);
}

static int compare(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int list__read(struct list *list, const char *directory)
{
	_cleanup_(close_directory) DIR *open = opendir(directory);
	struct dirent *entry;
	struct stat st;

	if (!open)
		return -errno;
	while ((entry = readdir(open))) {
		__u64 number = number_of(entry->d_name);

		if (!number || fstatat(dirfd(open), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (array__reserve(&list->files, &list->room, list->n + 1, sizeof(*list->files)))
			return -ENOMEM;
		list->files[list->n] =
			(struct kept){ .number = number, .bytes = st.st_blocks * 512 };
		snprintf(list->files[list->n].name, sizeof(list->files[0].name), "%s",
			 entry->d_name);
		list->bytes += list->files[list->n++].bytes;
	}
	if (list->n)
		qsort(list->files, list->n, sizeof(*list->files), compare);
	return 0;
}

/* Removes the oldest files: all but @most, and until the others have @most_bytes. The newest one stays. Returns
 * how many were removed, or a negative errno. */
static int prune(const struct serve_store *store, __u64 most, __u64 most_bytes)
{
	struct list list = { 0 };
	char path[PATH_MAX];
	size_t at = 0;
	int err = list__read(&list, store->directory);

	for (; !err && at + 1 < list.n && (list.n - at > most || list.bytes > most_bytes); at++) {
		snprintf(path, sizeof(path), "%s/%s", store->directory, list.files[at].name);
		if (unlink(path) && errno != ENOENT)
			err = -errno;
		list.bytes -= list.files[at].bytes;
	}
	free(list.files);
	return err ? err : (int)at;
}

/* Removes the oldest file, unless it is the only one. Returns whether it did. */
static bool drop_oldest(const struct serve_store *store)
{
	struct list list = { 0 };
	bool drops = !list__read(&list, store->directory) && list.n > 1;

	free(list.files);
	return drops && prune(store, list.n - 1, UINT64_MAX) > 0;
}

int serve_store__open(struct serve_store *store, struct error *error)
{
	struct list list = { 0 };
	int err = new_file__make_directory(store->directory, 0700);

	if (!err || err == -EEXIST)
		err = list__read(&list, store->directory);
	if (!err && list.n)
		store->last = list.files[list.n - 1].number;
	free(list.files);
	if (err)
		return error__set(error, err, "cannot keep recordings in %s: %s", store->directory,
				  strerror(-err));
	if (access(store->directory, W_OK))
		return error__set(error, -errno, "cannot keep recordings in %s: %s",
				  store->directory, strerror(errno));
	return 0;
}

int serve_store__add(struct serve_store *store, const struct profile *profile, struct error *error)
{
	time_t now = time(NULL);
	char path[PATH_MAX], when[32];
	struct tm tm;
	int err, removed;

	if (store->last == MOST_NUMBER)
		return error__set(error, -EOVERFLOW, "%s has no number left", store->directory);
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	if (snprintf(path, sizeof(path), "%s/serve-%0*llu-%s.data", store->directory, NUMBER_DIGITS,
		     store->last + 1, when) >= (int)sizeof(path))
		return error__set(error, -ENAMETOOLONG, "the name of %s is too long",
				  store->directory);
	err = data_file__write(profile, path, error);
	while ((err == -ENOSPC || err == -EDQUOT) && drop_oldest(store))
		err = data_file__write(profile, path, error);
	if (err)
		return err;
	store->last++;
	removed = prune(store, store->most, store->most_bytes);
	return removed < 0 ? error__set(error, removed, "cannot remove old recordings in %s: %s",
					store->directory, strerror(-removed))
			   : 0;
}
