// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "array.h"
#include "profile_index.h"

/* Numbers of struct profile_blocks that are not of a histogram. */
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

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
/* Bytes of the longest number, as LEB128 of DWARF. */
#define MAX_LEB128 10
#define MAX_PACKED (2 + MAX_LEB128 * N_NUMBERS + 2 * (1 + PROFILE_BUCKETS * (1 + MAX_LEB128)))

static __u64 *number(struct profile_blocks *blocks, size_t i)
{
	return (__u64 *)((char *)blocks + numbers[i]);
}

static unsigned char *pack(unsigned char *to, __u64 value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = value | 0x80;
	*to++ = value;
	return to;
}

static const unsigned char *unpack(const unsigned char *from, __u64 *value)
{
	unsigned int shift = 0;

	*value = 0;
	do
		*value |= (__u64)(*from & 0x7f) << shift;
	while (shift += 7, *from++ & 0x80);
	return from;
}

/* How many buckets there are, and these as pairs of which one and what it has. */
static unsigned char *pack_histogram(unsigned char *to, const __u64 buckets[PROFILE_BUCKETS])
{
	unsigned char *n = to++;

	*n = 0;
	for (unsigned int i = 0; i < PROFILE_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		++*n;
		*to++ = i;
		to = pack(to, buckets[i]);
	}
	return to;
}

static const unsigned char *unpack_histogram(const unsigned char *from,
					     __u64 buckets[PROFILE_BUCKETS])
{
	unsigned int n = *from++;

	while (n--) {
		unsigned int i = *from++;

		from = unpack(from, &buckets[i]);
	}
	return from;
}

/* Most numbers are small, and many are 0: a set of those that are not, and these. */
static size_t pack_blocks(struct profile_blocks *blocks, unsigned char packed[MAX_PACKED])
{
	unsigned char *to = packed + 2;
	unsigned int set = 0;

	for (size_t i = 0; i < N_NUMBERS; i++) {
		if (!*number(blocks, i))
			continue;
		set |= 1U << i;
		to = pack(to, *number(blocks, i));
	}
	packed[0] = set;
	packed[1] = set >> 8;
	to = pack_histogram(to, blocks->sizes);
	to = pack_histogram(to, blocks->lifetimes);
	return to - packed;
}

/* Returns how many bytes it was. */
static size_t unpack_blocks(const unsigned char *packed, struct profile_blocks *blocks)
{
	unsigned int set = packed[0] | packed[1] << 8;
	const unsigned char *from = packed + 2;

	for (size_t i = 0; i < N_NUMBERS; i++)
		if (set >> i & 1)
			from = unpack(from, number(blocks, i));
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

/* At the end of those that are there; what the count had before is left behind. */
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

unsigned int profile__bucket(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

int profile__add_lifetime(struct profile *profile, __u32 count, __u32 born, __u32 died,
			  __u64 blocks, __u64 size_bytes)
{
	struct profile_lifetime lifetime = { count, born, died, blocks, size_bytes };
	int err;

	if (!count || count > profile->n_counts || born > died)
		return -EINVAL;
	err = profile_index__reserve(&profile->lifetimes, &profile->index->lifetimes_room,
				     profile->n_lifetimes, sizeof(lifetime));
	if (!err)
		profile->lifetimes[profile->n_lifetimes++] = lifetime;
	return err;
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
