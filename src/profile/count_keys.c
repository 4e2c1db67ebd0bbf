// SPDX-License-Identifier: GPL-3.0-or-later
/* Hashes what counts, threads and processes have in all copies of a recording. */
#include "count_keys.h"

#include <stdlib.h>

#include "cleanup.h"
#include "hash_table.h"
#include "profile.h"

/* Hashes what a stack has in all copies: its code addresses. Looking names up may have added frames of
 * tail calls. */
static __u64 hash_stack(const struct profile *profile, const __u64 *modules, __u64 seed,
			const struct profile_stack *stack)
{
	__u64 hash = hash_mix(seed, stack->end);

	for (__u32 i = 0; i < stack->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[stack->frames[i] - 1];

		if (frame->tail_call)
			continue;
		hash = hash_mix(hash, frame->module ? modules[frame->module - 1] : 0);
		hash = hash_mix(hash, frame->offset << 2 | frame->place);
	}
	return hash;
}

/* Returns the hashes by stack's id - 1, or NULL if there is no memory. */
static __u64 *hash_stacks(const struct profile *profile, __u64 seed)
{
	_cleanup_(free_ptr) __u64 *modules = calloc(profile->n_modules + 1, sizeof(*modules));
	__u64 *hashes = calloc(profile->n_stacks + 1, sizeof(*hashes));

	if (!modules || !hashes) {
		free(hashes);
		return NULL;
	}
	for (size_t i = 0; i < profile->n_modules; i++)
		modules[i] = hash_string(hash_string(seed, profile->modules[i].path),
					 profile->modules[i].build_id);
	for (size_t i = 0; i < profile->n_stacks; i++)
		hashes[i] = hash_stack(profile, modules, seed, &profile->stacks[i]);
	return hashes;
}

__u64 process_key__of(const struct profile_process *process, __u64 seed)
{
	return hash_string(hash_mix(hash_mix(seed, process->pid), process->start_ns),
			   process->comm);
}

__u64 thread_key__of(const struct profile *profile, __u32 thread, __u64 seed)
{
	const struct profile_thread *of = &profile->threads[thread - 1];

	return hash_string(process_key__of(&profile->processes[of->process - 1], seed), of->name);
}

__u64 *count_keys__make(const struct profile *profile, __u64 seed)
{
	_cleanup_(free_ptr) __u64 *stacks = hash_stacks(profile, seed);
	__u64 *keys = stacks ? calloc(profile->n_counts + 1, sizeof(*keys)) : NULL;

	for (size_t i = 0; keys && i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];

		keys[i] = hash_mix(hash_mix(thread_key__of(profile, count->thread, seed),
					    stacks[count->stack - 1]),
				   count->function);
	}
	return keys;
}
