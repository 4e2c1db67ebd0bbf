// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "spared.h"

#include "inside_abi.h"

/* More than ten thousand threads with --live have. */
#define MAX_SPARED 32768

/* In place of a mapping's start: the slot is being written. */
#define WRITTEN 1

static struct {
	struct {
		__u64 start, end; /* @start is stored last; 0: free */
	} list[MAX_SPARED];
	__u32 n;    /* slots that were used so far */
	__u32 free; /* the first one that may be free */
} spared;

void spared__add(__u64 start, __u64 size)
{
	__u32 at = __atomic_load_n(&spared.free, __ATOMIC_RELAXED);

	for (; at < MAX_SPARED; at++) {
		__u32 n = __atomic_load_n(&spared.n, __ATOMIC_RELAXED);
		__u64 none = 0;

		if (!__atomic_compare_exchange_n(&spared.list[at].start, &none, WRITTEN, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&spared.free, at + 1, __ATOMIC_RELAXED);
		spared.list[at].end = start + size;
		__atomic_store_n(&spared.list[at].start, start, __ATOMIC_RELEASE);
		while (n <= at && !__atomic_compare_exchange_n(&spared.n, &n, at + 1, false,
							       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		return;
	}
}

void spared__remove(__u64 start)
{
	__u32 n = __atomic_load_n(&spared.n, __ATOMIC_RELAXED);

	for (__u32 i = n; i-- > 0;)
		if (__atomic_load_n(&spared.list[i].start, __ATOMIC_RELAXED) == start) {
			__atomic_store_n(&spared.list[i].start, 0, __ATOMIC_RELEASE);
			if (i < __atomic_load_n(&spared.free, __ATOMIC_RELAXED))
				__atomic_store_n(&spared.free, i, __ATOMIC_RELAXED);
			return;
		}
}

void spared__end(void)
{
	__atomic_store_n(&spared.n, 0, __ATOMIC_RELAXED);
}

/* The first mapping in the range, cut to it; false if there is none. */
static bool find_first(__u64 start, __u64 end, __u64 *first, __u64 *first_end)
{
	__u32 n = __atomic_load_n(&spared.n, __ATOMIC_RELAXED);
	bool found = false;

	for (__u32 i = 0; i < n; i++) {
		__u64 from = __atomic_load_n(&spared.list[i].start, __ATOMIC_ACQUIRE);
		__u64 to = spared.list[i].end;

		if (from <= WRITTEN || from >= end || to <= start || (found && from >= *first))
			continue;
		*first = from > start ? from : start;
		*first_end = to < end ? to : end;
		found = true;
	}
	return found;
}

/* The end of the range as the kernel takes it; @start where it refuses the range. */
static __u64 end_of(__u64 start, __u64 size)
{
	__u64 end = start + ((size + INSIDE_PAGE - 1) & ~(__u64)(INSIDE_PAGE - 1));

	return start & (INSIDE_PAGE - 1) || end < start ? start : end;
}

bool spared__overlaps(__u64 start, __u64 size)
{
	__u64 first, first_end;

	return find_first(start, end_of(start, size), &first, &first_end);
}

int spared__around(__u64 start, __u64 size, spared_fn fn, void *context)
{
	__u64 end = end_of(start, size), first, first_end;
	int err;

	if (!find_first(start, end, &first, &first_end))
		return fn(context, start, size);
	do {
		err = first > start ? fn(context, start, first - start) : 0;
		start = first_end;
	} while (!err && find_first(start, end, &first, &first_end));
	return err || start >= end ? err : fn(context, start, end - start);
}
