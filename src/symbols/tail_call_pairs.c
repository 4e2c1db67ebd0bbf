// SPDX-License-Identifier: GPL-3.0-or-later
#include "tail_call_pairs.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "profile.h"

void tail_call_pairs__release(struct tail_call_pairs *pairs)
{
	hash_table__release(&pairs->index);
	free(pairs->list);
}

static bool is_pair(const void *owner, __u32 id, const void *key)
{
	const struct tail_call_pair *pair = &((const struct tail_call_pairs *)owner)->list[id - 1];
	const struct tail_call_pair *wanted = key;

	return pair->inner == wanted->inner && pair->outer == wanted->outer &&
	       pair->function == wanted->function;
}

static __u64 hash_of(const struct tail_call_pairs *pairs, const struct tail_call_pair *pair)
{
	return hash_mix(hash_mix(hash_mix(pairs->seed, pair->inner), pair->outer), pair->function);
}

const struct tail_call_pair *tail_call_pairs__find(const struct tail_call_pairs *pairs,
						   const struct tail_call_pair *wanted)
{
	__u32 id = hash_table__find(&pairs->index, hash_of(pairs, wanted), is_pair, pairs, wanted);

	return id ? &pairs->list[id - 1] : NULL;
}

int tail_call_pairs__add(struct tail_call_pairs *pairs, const struct tail_call_pair *pair)
{
	int err = array__reserve(&pairs->list, &pairs->room, pairs->n + 1, sizeof(*pairs->list));

	if (!err)
		err = hash_table__insert(&pairs->index, hash_of(pairs, pair), pairs->n + 1);
	if (!err)
		pairs->list[pairs->n++] = *pair;
	return err;
}

static bool is_tail_call(const struct profile *profile, __u32 frame)
{
	return profile->frames[frame - 1].tail_call;
}

bool stack__may_begin(const struct profile *profile, const struct profile_stack *stack)
{
	return stack->n_frames && !is_tail_call(profile, stack->frames[0]);
}

bool stack__may_have_between(const struct profile *profile, const struct profile_stack *stack,
			     __u32 i)
{
	return i + 1 < stack->n_frames && stack->frames[i + 1] &&
	       !is_tail_call(profile, stack->frames[i]) &&
	       !is_tail_call(profile, stack->frames[i + 1]);
}

int stacks__functions(const struct profile *profile, __u64 **out)
{
	__u64 *functions = calloc(profile->n_stacks + 1, sizeof(*functions));

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		functions[profile->counts[i].stack - 1] |= 1ULL << profile->counts[i].function;
	*out = functions;
	return 0;
}
