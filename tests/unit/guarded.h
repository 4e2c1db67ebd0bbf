/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory behind whose end nothing can be read. */
#ifndef ALLOCPROF_TESTS_GUARDED_H
#define ALLOCPROF_TESTS_GUARDED_H

#include "unit.h"

#include <linux/types.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One page, and one that cannot be read behind it; for munmap(2) of both. */
static inline char *guarded__new(size_t *page_bytes)
{
	char *pages;

	*page_bytes = sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * *page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + *page_bytes, *page_bytes, PROT_NONE), 0);
	return pages;
}

/* Calls @handle with records of @type of each size that is too small for @whole_bytes, as the ring buffer aligns them. */
static inline void
guarded__each_short(__u32 type, size_t whole_bytes,
		    int (*handle)(void *context, const void *record, size_t size), void *context)
{
	size_t page_bytes;
	char *pages = guarded__new(&page_bytes);

	for (size_t size = 0; size < whole_bytes; size += 8) {
		char *record = pages + page_bytes - size;

		memset(pages, 1, page_bytes);
		if (size)
			memcpy(record, &type, sizeof(type));
		assert_int_equal(handle(context, record, size), 0);
	}
	munmap(pages, 2 * page_bytes);
}

#endif
