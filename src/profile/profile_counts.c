// SPDX-License-Identifier: GPL-3.0-or-later
/* Counts of calls by process, thread, stack and function. */
#include "profile_internal.h"

#include <errno.h>
#include <string.h>

#include "hash_table.h"
#include "profile.h"

__u64 profile__add_up(__u64 a, __u64 b)
{
	__u64 sum;

	return __builtin_add_overflow(a, b, &sum) || sum > PROFILE_MAX ? PROFILE_MAX : sum;
}

static bool match_count(const void *owner, __u32 id, const void *key)
{
	const struct profile_count *count = &((const struct profile *)owner)->counts[id - 1];
	const struct profile_count *wanted = key;

	return count->thread == wanted->thread && count->stack == wanted->stack &&
	       count->function == wanted->function;
}

static __u32 find_closed(const struct profile *profile, const struct profile_count *wanted)
{
	for (__u32 id = 1; id <= profile->index->n_closed; id++)
		if (match_count(profile, id, wanted))
			return id;
	return 0;
}

int profile__add_count(struct profile *profile, __u32 thread, __u32 stack,
		       enum ap_function function, __u64 calls, __u64 size_bytes, __u32 *id)
{
	struct profile_index *index = profile->index;
	struct profile_count count = { .thread = thread, .stack = stack, .function = function };
	__u64 hash = hash_mix(hash_mix(hash_mix(index->seed, thread), stack), function);
	__u32 found;
	int err;

	if (!thread || thread > profile->n_threads || !stack || stack > profile->n_stacks ||
	    (unsigned int)function >= AP_FUNCTIONS)
		return -EINVAL;
	found = hash_table__find(&index->counts, hash, match_count, profile, &count);
	if (!found && profile->threads[thread - 1].is_closed)
		found = find_closed(profile, &count);
	if (!found) {
		count.id = found = profile->n_counts + 1;
		count.process = profile->threads[thread - 1].process;
		err = profile_index__append(&index->counts, hash, &profile->counts,
					    &index->counts_room, &profile->n_counts, &count,
					    sizeof(count));
		if (err)
			return err;
	}
	profile->counts[found - 1].calls = profile__add_up(profile->counts[found - 1].calls, calls);
	profile->counts[found - 1].size_bytes =
		profile__add_up(profile->counts[found - 1].size_bytes, size_bytes);
	*id = found;
	return 0;
}

void profile__close_counts(struct profile *profile)
{
	struct profile_index *index = profile->index;

	for (; index->n_closed < profile->n_counts; index->n_closed++)
		profile->threads[profile->counts[index->n_closed].thread - 1].is_closed = true;
	hash_table__release(&index->counts);
}

void profile__forget_counts(struct profile *profile)
{
	profile->n_counts = profile->index->n_closed = 0;
	profile->index->n_blocks = 0;
	profile->n_samples = 0;
	if (profile->index->samples_of)
		memset(profile->index->samples_of, 0,
		       profile->index->samples_of_room * sizeof(*profile->index->samples_of));
	profile->n_lifetimes = profile->index->lifetimes_bytes = 0;
	profile->n_timeline = 0;
	hash_table__release(&profile->index->counts);
}
