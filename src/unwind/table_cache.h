/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Unwind tables that were made in earlier recordings, a file each in a directory of this user's. Nothing that is
 * read there is trusted: a directory or a file that others may write to is not used, and a table is only used when
 * all of it makes sense.
 */
#ifndef ALLOCPROF_TABLE_CACHE_H
#define ALLOCPROF_TABLE_CACHE_H

#include <linux/types.h>

struct cfi_table;
struct error;
struct table_cache;

/* What tells a file and its contents from all others. A build id alone does not: anybody can give a file that of
 * another one. */
struct table_key {
	__u64 device, inode, generation;
	__u64 size_bytes;
	__u64 modified_ns, changed_ns; /* of its contents; of these or its inode */
	char build_id[40];	       /* the beginning, padded with zeros */
};

/* The key of the file that is open. 0 or a negative errno. */
int table_key__of(int fd, const char *build_id, struct table_key *key);

/*
 * Opens the cache: $XDG_CACHE_HOME/allocprof/tables, /var/cache/allocprof/tables for root,
 * ~/.cache/allocprof/tables for others. -ENOMEM, or a negative errno with the reason in @error.
 */
int table_cache__open(struct table_cache **out, struct error *error);

/* The same at @directory, of @max_bytes at the most, for what the program called @maker has made; each has its own
 * tables. */
int table_cache__open_at(const char *directory, const char *maker, __u64 max_bytes,
			 struct table_cache **out, struct error *error);

/* Accepts NULL. */
void table_cache__close(struct table_cache *cache);

/* Where it is. Valid as long as @cache. */
const char *table_cache__path(const struct table_cache *cache);

/* Bytes of the files in it. */
__u64 table_cache__size_bytes(const struct table_cache *cache);

/* The table of the file with @key, the caller's. -ENOENT where there is none that can be used. */
int table_cache__get(struct table_cache *cache, const struct table_key *key,
		     struct cfi_table **out);

/* Keeps the table, which was made of the file @fd, if that still is what @key says, and drops those not used for
 * the longest time where there are too many. What fails is not kept. */
void table_cache__put(struct table_cache *cache, const struct table_key *key, int fd,
		      const struct cfi_table *table);

#endif
