/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash table in shared memory that one thread writes, and that grows. */
#ifndef ALLOCPROF_INSIDE_TABLE_H
#define ALLOCPROF_INSIDE_TABLE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct table {
	char *entries;
	__u32 shift; /* log2 of the room */
	__u32 n;     /* entries in use */
};

struct table_kind {
	size_t entry_bytes;
	/* Hash of an entry in use; 0 for a free one. */
	__u64 (*hash)(const void *entry);
};

/* Makes room for one more entry. *@published is the place that allocprof reads; it sees the table as it was
 * before or as it is now. Entries move if that returns true and table->shift has changed. False: no room. */
bool table__reserve(struct table *table, const struct table_kind *kind, __u64 *published);

/* The first entry to look at for a hash, and the one behind @entry. The table has entries. */
static inline void *table__first(const struct table *table, size_t entry_bytes, __u64 hash)
{
	return table->entries + (hash & ((1ULL << table->shift) - 1)) * entry_bytes;
}

static inline void *table__next(const struct table *table, size_t entry_bytes, const void *entry)
{
	char *next = (char *)entry + entry_bytes;

	return next == table->entries + (entry_bytes << table->shift) ? table->entries : next;
}

#endif
