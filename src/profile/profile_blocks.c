// SPDX-License-Identifier: GPL-3.0-or-later
/* What became of the memory of a profile's counts: blocks, bytes and histograms. */
#include "profile_internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "array.h"
#include "leb128.h"

/* Fields of struct profile_blocks other than histograms. */
static const size_t numbers[] = {
	offsetof(struct profile_blocks, failed),
	offsetof(struct profile_blocks, allocations),
	offsetof(struct profile_blocks, size_bytes),
	offsetof(struct profile_blocks, frees),
	offsetof(struct profile_blocks, freed_bytes),
	offsetof(struct profile_blocks, discarded),
	offsetof(struct profile_blocks, discarded_bytes),
	offsetof(struct profile_blocks, temporary),
	offsetof(struct profile_blocks, temporary_bytes),
	offsetof(struct profile_blocks, peak),
	offsetof(struct profile_blocks, peak_bytes),
	offsetof(struct profile_blocks, oldest_ns),
};

#define N_NUMBERS  (ARRAY_SIZE(numbers))
#define MAX_PACKED (2 + LEB128_MAX * N_NUMBERS + 2 * (1 + PROFILE_BUCKETS * (1 + LEB128_MAX)))

static __u64 *number(struct profile_blocks *blocks, size_t i)
{
	return (__u64 *)((char *)blocks + numbers[i]);
}

/* Writes the number of used buckets, and each as its index and its value. */
static unsigned char *pack_histogram(unsigned char *to, const __u64 buckets[PROFILE_BUCKETS])
{
	unsigned char *n = to++;

	*n = 0;
	for (unsigned int i = 0; i < PROFILE_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		++*n;
		*to++ = i;
		to = leb128__put(to, buckets[i]);
	}
	return to;
}

static const unsigned char *unpack_histogram(const unsigned char *from,
					     __u64 buckets[PROFILE_BUCKETS])
{
	unsigned int n = *from++;

	while (n--) {
		unsigned int i = *from++;

		from = leb128__get(from, &buckets[i]);
	}
	return from;
}

/* Many fields are 0 and most are small: writes a bitmap of those that are not 0, and these. */
static size_t pack_blocks(struct profile_blocks *blocks, unsigned char packed[MAX_PACKED])
{
	unsigned char *to = packed + 2;
	unsigned int set = 0;

	for (size_t i = 0; i < N_NUMBERS; i++) {
		if (!*number(blocks, i))
			continue;
		set |= 1U << i;
		to = leb128__put(to, *number(blocks, i));
	}
	packed[0] = set;
	packed[1] = set >> 8;
	to = pack_histogram(to, blocks->sizes);
	to = pack_histogram(to, blocks->lifetimes);
	return to - packed;
}

/* Returns the number of bytes read. */
static size_t unpack_blocks(const unsigned char *packed, struct profile_blocks *blocks)
{
	unsigned int set = packed[0] | packed[1] << 8;
	const unsigned char *from = packed + 2;

	for (size_t i = 0; i < N_NUMBERS; i++)
		if (set >> i & 1)
			from = leb128__get(from, number(blocks, i));
	from = unpack_histogram(from, blocks->sizes);
	from = unpack_histogram(from, blocks->lifetimes);
	return from - packed;
}

static void add_up(struct profile_blocks *to, struct profile_blocks *more)
{
	__u64 oldest_ns = to->oldest_ns;

	if (!oldest_ns || (more->oldest_ns && more->oldest_ns < oldest_ns))
		oldest_ns = more->oldest_ns;
	for (size_t i = 0; i < N_NUMBERS; i++)
		*number(to, i) = profile__add_up(*number(to, i), *number(more, i));
	to->oldest_ns = oldest_ns;
	for (size_t i = 0; i < PROFILE_BUCKETS; i++) {
		to->sizes[i] = profile__add_up(to->sizes[i], more->sizes[i]);
		to->lifetimes[i] = profile__add_up(to->lifetimes[i], more->lifetimes[i]);
	}
}

/* Appends; the count's earlier data becomes garbage. */
static int append(struct profile *profile, struct profile_count *count, const void *packed,
		  size_t size)
{
	struct profile_index *index = profile->index;

	if (index->n_blocks + size >= UINT32_MAX ||
	    array__reserve(&index->blocks, &index->blocks_room, index->n_blocks + size, 1))
		return -ENOMEM;
	memcpy(index->blocks + index->n_blocks, packed, size);
	count->blocks = index->n_blocks + 1;
	index->n_blocks += size;
	return 0;
}

int profile__add_blocks(struct profile *profile, const struct profile_blocks *more)
{
	unsigned char packed[MAX_PACKED];
	struct profile_blocks sum = *more;
	struct profile_count *count;
	size_t size, old_size = 0;

	if (!more->count || more->count > profile->n_counts)
		return -EINVAL;
	count = &profile->counts[more->count - 1];
	if (count->blocks) {
		struct profile_blocks old = { 0 };

		old_size = unpack_blocks(profile->index->blocks + count->blocks - 1, &old);
		add_up(&sum, &old);
	}
	size = pack_blocks(&sum, packed);
	if (size > old_size)
		return append(profile, count, packed, size);
	memcpy(profile->index->blocks + count->blocks - 1, packed, size);
	return 0;
}

bool profile__has_blocks(const struct profile *profile)
{
	return profile->index->n_blocks;
}

bool profile__count_blocks(const struct profile *profile, const struct profile_count *count,
			   struct profile_blocks *out)
{
	*out = (struct profile_blocks){ .count = count->id };
	if (!count->blocks)
		return false;
	unpack_blocks(profile->index->blocks + count->blocks - 1, out);
	return true;
}

__u64 profile_blocks__live(const struct profile_blocks *blocks)
{
	return blocks->allocations - blocks->frees - blocks->discarded;
}

__u64 profile_blocks__live_bytes(const struct profile_blocks *blocks)
{
	return blocks->size_bytes - blocks->freed_bytes - blocks->discarded_bytes;
}

int profile__add_moment(struct profile *profile, const struct profile_moment *moment)
{
	const struct profile_moment *last =
		profile->n_timeline ? &profile->timeline[profile->n_timeline - 1] : NULL;
	__u32 run = moment->run ? moment->run : 1;
	int err;

	if (last && (last->run > run || (last->run == run && last->time_ns >= moment->time_ns)))
		return -EINVAL;
	err = profile_index__reserve(&profile->timeline, &profile->index->timeline_room,
				     profile->n_timeline, sizeof(*moment));
	if (err)
		return err;
	profile->timeline[profile->n_timeline] = *moment;
	profile->timeline[profile->n_timeline++].run = run;
	return 0;
}
