// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>

#include "hash_table.h"
#include "profile_index.h"

int profile__get_blocks(struct profile *profile, __u32 count, struct profile_blocks **blocks)
{
	struct profile_blocks fresh = { .count = count };
	struct profile_count *owner;
	int err;

	if (!count || count > profile->n_counts)
		return -EINVAL;
	owner = &profile->counts[count - 1];
	if (!owner->blocks) {
		err = profile_index__reserve(&profile->blocks, &profile->index->blocks_room,
					     profile->n_blocks, sizeof(fresh));
		if (err)
			return err;
		profile->blocks[profile->n_blocks++] = fresh;
		owner->blocks = profile->n_blocks;
	}
	*blocks = &profile->blocks[owner->blocks - 1];
	return 0;
}

const struct profile_blocks *profile__count_blocks(const struct profile *profile,
						   const struct profile_count *count)
{
	return count->blocks ? &profile->blocks[count->blocks - 1] : NULL;
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

static bool match_lifetime(const void *owner, __u32 at, const void *key)
{
	const struct profile_lifetime *lifetime =
		&((const struct profile *)owner)->lifetimes[at - 1];
	const struct profile_lifetime *wanted = key;

	return lifetime->count == wanted->count && lifetime->born == wanted->born &&
	       lifetime->died == wanted->died;
}

int profile__add_lifetime(struct profile *profile, __u32 count, __u32 born, __u32 died,
			  __u64 blocks, __u64 size_bytes)
{
	struct profile_index *index = profile->index;
	struct profile_lifetime lifetime = { .count = count, .born = born, .died = died };
	__u64 hash = hash_mix(hash_mix(index->seed, count), (__u64)born << 32 | died);
	struct profile_lifetime *found;
	__u32 at;
	int err;

	if (!count || count > profile->n_counts || born > died)
		return -EINVAL;
	at = hash_table__find(&index->lifetimes, hash, match_lifetime, profile, &lifetime);
	if (!at) {
		err = profile_index__reserve(&profile->lifetimes, &index->lifetimes_room,
					     profile->n_lifetimes, sizeof(lifetime));
		if (err)
			return err;
		at = profile->n_lifetimes + 1;
		err = hash_table__insert(&index->lifetimes, hash, at);
		if (err)
			return err;
		profile->lifetimes[profile->n_lifetimes++] = lifetime;
	}
	found = &profile->lifetimes[at - 1];
	found->blocks = profile__add_up(found->blocks, blocks);
	found->size_bytes = profile__add_up(found->size_bytes, size_bytes);
	return 0;
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
