// SPDX-License-Identifier: GPL-3.0-or-later
/* When blocks were allocated and freed, packed in intervals of time. */
#include "profile_internal.h"

#include <errno.h>

#include "array.h"
#include "leb128.h"

#define N_NUMBERS 5

__u32 profile_lifetime__end_epoch(const struct profile_lifetime *lifetime)
{
	return lifetime->died != PROFILE_LIVE ? lifetime->died : lifetime->exited;
}

__u32 profile_lifetime__last_epoch(const struct profile_lifetime *lifetime)
{
	__u32 end = profile_lifetime__end_epoch(lifetime);

	return end == PROFILE_LIVE ? lifetime->born : end;
}

/* The age and whether an exit ended it, not the epoch: most blocks die soon, so that takes fewer
 * bytes. */
static __u64 pack_end(const struct profile_lifetime *lifetime)
{
	__u32 last = profile_lifetime__end_epoch(lifetime);

	if (last == PROFILE_LIVE)
		return 0;
	return ((__u64)last - lifetime->born + 1) << 1 | (lifetime->died == PROFILE_LIVE);
}

static unsigned char *pack(unsigned char *to, const struct profile_lifetime *lifetime)
{
	to = leb128__put(to, lifetime->count);
	to = leb128__put(to, lifetime->born);
	to = leb128__put(to, pack_end(lifetime));
	to = leb128__put(to, lifetime->blocks);
	return leb128__put(to, lifetime->size_bytes);
}

static const unsigned char *unpack(const unsigned char *from, struct profile_lifetime *out)
{
	__u64 numbers[N_NUMBERS];
	bool has_exited;
	__u32 last;

	for (int i = 0; i < N_NUMBERS; i++)
		from = leb128__get(from, &numbers[i]);
	has_exited = numbers[2] & 1;
	last = numbers[2] ? numbers[1] + (numbers[2] >> 1) - 1 : PROFILE_LIVE;
	*out = (struct profile_lifetime){
		.count = numbers[0],
		.born = numbers[1],
		.died = has_exited ? PROFILE_LIVE : last,
		.exited = has_exited ? last : PROFILE_LIVE,
		.blocks = numbers[3],
		.size_bytes = numbers[4],
	};
	return from;
}

int profile__add_lifetime(struct profile *profile, const struct profile_lifetime *lifetime)
{
	struct profile_index *index = profile->index;
	size_t most = index->lifetimes_bytes + N_NUMBERS * LEB128_MAX;

	if (!lifetime->count || lifetime->count > profile->n_counts ||
	    lifetime->born > lifetime->died || lifetime->born > lifetime->exited)
		return -EINVAL;
	if (lifetime->died != PROFILE_LIVE && lifetime->exited != PROFILE_LIVE)
		return -EINVAL;
	if (most > UINT32_MAX || array__reserve(&index->lifetimes, &index->lifetimes_room, most, 1))
		return -ENOMEM;
	index->lifetimes_bytes =
		pack(index->lifetimes + index->lifetimes_bytes, lifetime) - index->lifetimes;
	profile->n_lifetimes++;
	return 0;
}

bool profile__next_lifetime(const struct profile *profile, __u32 *at, struct profile_lifetime *out)
{
	const struct profile_index *index = profile->index;

	if (*at >= index->lifetimes_bytes)
		return false;
	*at = unpack(index->lifetimes + *at, out) - index->lifetimes;
	return true;
}

__u32 profile__fold_epoch(__u32 epoch, __u32 by)
{
	if (epoch == PROFILE_LIVE)
		return epoch;
	return by < 32 ? epoch >> by : 0;
}

/* Works in place: no folded number is longer than the original. */
void profile__fold_lifetimes(struct profile *profile, __u32 by)
{
	struct profile_index *index = profile->index;
	unsigned char *to = index->lifetimes;
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		lifetime.born = profile__fold_epoch(lifetime.born, by);
		lifetime.died = profile__fold_epoch(lifetime.died, by);
		lifetime.exited = profile__fold_epoch(lifetime.exited, by);
		to = pack(to, &lifetime);
	}
	index->lifetimes_bytes = to - index->lifetimes;
}

__u32 profile__last_epoch(const struct profile *profile)
{
	struct profile_lifetime lifetime;
	__u32 last = 0, at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		__u32 epoch = profile_lifetime__last_epoch(&lifetime);

		if (epoch > last)
			last = epoch;
	}
	return last;
}
