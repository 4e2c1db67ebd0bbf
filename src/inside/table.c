// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"

#include <asm/unistd.h>
#include <linux/mman.h>

#include "memory.h"
#include "sys.h"

#define FIRST_SHIFT 4

/* From this size on a table has pages of its own, which are given back. */
#define OWN_PAGES_BYTES (16 << 10)

static char *take(size_t bytes, __u64 *place)
{
	return bytes < OWN_PAGES_BYTES ? memory__take(bytes, place)
				       : memory__take_pages(bytes, place);
}

static void give_back(char *entries, size_t bytes)
{
	if (!entries || bytes < OWN_PAGES_BYTES)
		return;
	bytes = (bytes + INSIDE_PAGE - 1) & ~(size_t)(INSIDE_PAGE - 1);
	sys(__NR_madvise, (long)entries, bytes, MADV_REMOVE, 0, 0, 0);
	sys__unmap(entries, bytes);
}

static bool grow(struct table *table, const struct table_kind *kind, __u64 *published)
{
	struct table grown = { .shift = table->entries ? table->shift + 1 : FIRST_SHIFT };
	size_t bytes = kind->entry_bytes << grown.shift;
	__u64 place;

	if (grown.shift > INSIDE_MAX_SHIFT)
		return false;
	grown.entries = take(bytes, &place);
	if (!grown.entries)
		return false;
	for (__u64 i = 0; table->entries && i < 1ULL << table->shift; i++) {
		const char *from = table->entries + i * kind->entry_bytes;
		__u64 hash = kind->hash(from);
		void *to;

		if (!hash)
			continue;
		to = table__first(&grown, kind->entry_bytes, hash);
		while (kind->hash(to))
			to = table__next(&grown, kind->entry_bytes, to);
		memcpy(to, from, kind->entry_bytes);
		grown.n++;
	}
	__atomic_store_n(published, place | grown.shift, __ATOMIC_RELEASE);
	give_back(table->entries, kind->entry_bytes << table->shift);
	*table = grown;
	return true;
}

/* A signal's handler that jumps out of here would leave a part of it. */
bool table__reserve(struct table *table, const struct table_kind *kind, __u64 *published)
{
	__u64 signals;
	bool has_room;

	if (table->entries && table->n < (1U << table->shift) / 2)
		return true;
	sys__block_signals(&signals);
	has_room = grow(table, kind, published);
	sys__restore_signals(signals);
	return has_room;
}
