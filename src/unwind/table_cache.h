/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Caches unwind tables for later recordings, one per file in a directory of this user's. Its
 * contents are not trusted: a directory or file to which others may write is not used, and tables
 * are validated.
 */
#ifndef ALLOCPROF_TABLE_CACHE_H
#define ALLOCPROF_TABLE_CACHE_H

#include <linux/types.h>

struct cfi_table;
struct error;
struct table_cache;

/* Identifies a file and its contents. A build id alone does not, because anyone can forge one. */
struct table_key {
	__u64 device, inode, generation;
	__u64 size_bytes;
	__u64 modified_ns, changed_ns; /* mtime and ctime */
	char build_id[40];	       /* truncated, padded with zeros */
};

/* Makes the key of an open file. Returns 0 or a negative errno. */
int table_key__of(int fd, const char *build_id, struct table_key *key);

/*
 * Opens the cache: $XDG_CACHE_HOME/allocprof/tables, /var/cache/allocprof/tables for root,
 * ~/.cache/allocprof/tables for others. Fails with -ENOMEM, or a negative errno with the reason in
 * @error.
 */
int table_cache__open(struct table_cache **out, struct error *error);

/* Works like table_cache__open(), in @directory, with a limit of @max_bytes, for tables made by
 * the program @maker; each maker has its own tables. */
int table_cache__open_at(const char *directory, const char *maker, __u64 max_bytes,
			 struct table_cache **out, struct error *error);

/* Accepts NULL. */
void table_cache__close(struct table_cache *cache);

/* Returns the directory, valid as long as @cache. */
const char *table_cache__path(const struct table_cache *cache);

/* Returns the total size of its files. */
__u64 table_cache__size_bytes(const struct table_cache *cache);

/* Stores the table for @key, which the caller frees, in *@out. Fails with -ENOENT if there is no
 * usable one. */
int table_cache__get(struct table_cache *cache, const struct table_key *key,
		     struct cfi_table **out);

/* Stores the table of the file @fd, if the file still matches @key, and deletes the least recently
 * used ones if there are too many. Failures are ignored. */
void table_cache__put(struct table_cache *cache, const struct table_key *key, int fd,
		      const struct cfi_table *table);

#endif
