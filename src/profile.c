// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash_table.h"

/* Tables hold index + 1 of the array of the same name. */
struct profile_index {
	__u64 seed;
	struct hash_table modules, frames, stacks, counts, meta, ledger;
	size_t modules_room, processes_room, frames_room, stacks_room, counts_room, meta_room,
		ledger_room;
};

static const char *const function_names[AP_FUNCTIONS] = {
	[AP_MALLOC] = "malloc",
	[AP_CALLOC] = "calloc",
	[AP_REALLOC] = "realloc",
	[AP_REALLOCARRAY] = "reallocarray",
	[AP_POSIX_MEMALIGN] = "posix_memalign",
	[AP_ALIGNED_ALLOC] = "aligned_alloc",
	[AP_MEMALIGN] = "memalign",
	[AP_VALLOC] = "valloc",
	[AP_PVALLOC] = "pvalloc",
	[AP_FREE] = "free",
};

static const char *const lost_names[AP_LOST_REASONS] = {
	[AP_LOST_RECURSION] = "recursion",     [AP_LOST_NO_SCRATCH] = "no_scratch",
	[AP_LOST_RING_FULL] = "ring_full",     [AP_LOST_COUNTS_FULL] = "counts_full",
	[AP_LOST_UNACCOUNTED] = "unaccounted",
};

static const char *const end_names[AP_STACK_ENDS] = {
	[AP_END_COMPLETE] = "complete",	      [AP_END_MAX_DEPTH] = "max_depth",
	[AP_END_NO_MAPPING] = "no_mapping",   [AP_END_BAD_FRAME] = "bad_frame",
	[AP_END_UNREADABLE] = "unreadable",   [AP_END_NO_TABLE] = "no_table",
	[AP_END_UNSUPPORTED] = "unsupported", [AP_END_FRAME_POINTERS] = "frame_pointers",
	[AP_END_DUMP_SHORT] = "dump_short",
};

struct profile *profile__new(void)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->index = calloc(1, sizeof(*profile->index));
	if (!profile->index) {
		free(profile);
		return NULL;
	}
	profile->index->seed = hash_seed();
	return profile;
}

void profile__free(struct profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->n_modules; i++) {
		free(profile->modules[i].path);
		free(profile->modules[i].build_id);
	}
	for (size_t i = 0; i < profile->n_processes; i++)
		free(profile->processes[i].comm);
	for (size_t i = 0; i < profile->n_frames; i++)
		free(profile->frames[i].function);
	for (size_t i = 0; i < profile->n_stacks; i++)
		free(profile->stacks[i].frames);
	for (size_t i = 0; i < profile->n_meta; i++) {
		free(profile->meta[i].key);
		free(profile->meta[i].value);
	}
	for (size_t i = 0; i < profile->n_ledger; i++)
		free(profile->ledger[i].name);
	free(profile->modules);
	free(profile->processes);
	free(profile->frames);
	free(profile->stacks);
	free(profile->counts);
	free(profile->meta);
	free(profile->ledger);
	hash_table__release(&profile->index->modules);
	hash_table__release(&profile->index->frames);
	hash_table__release(&profile->index->stacks);
	hash_table__release(&profile->index->counts);
	hash_table__release(&profile->index->meta);
	hash_table__release(&profile->index->ledger);
	free(profile->index);
	free(profile);
}

/* Room for one more element of @size bytes after @n. Ids are 32 bits wide. */
static int reserve(void *array, size_t *room, size_t n, size_t size)
{
	void **at = array;
	size_t wanted;
	void *grown;

	if (n < *room)
		return 0;
	if (n >= UINT32_MAX)
		return -ENOMEM;
	wanted = *room ? *room + *room / 2 : 16;
	grown = reallocarray(*at, wanted, size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*room = wanted;
	return 0;
}

static bool match_module(const void *owner, __u32 id, const void *key)
{
	const struct profile_module *module = &((const struct profile *)owner)->modules[id - 1];
	const struct profile_module *wanted = key;

	return !strcmp(module->path, wanted->path) && !strcmp(module->build_id, wanted->build_id);
}

int profile__add_module(struct profile *profile, const char *path, const char *build_id, __u32 *id)
{
	struct profile_index *index = profile->index;
	__u64 hash = hash_string(hash_string(index->seed, path), build_id);
	struct profile_module wanted = { .path = (char *)path, .build_id = (char *)build_id };
	struct profile_module module;
	__u32 found;
	int err;

	found = hash_table__find(&index->modules, hash, match_module, profile, &wanted);
	if (found) {
		*id = found;
		return 0;
	}
	err = reserve(&profile->modules, &index->modules_room, profile->n_modules, sizeof(module));
	if (err)
		return err;
	module.id = profile->n_modules + 1;
	module.path = strdup(path);
	module.build_id = strdup(build_id);
	if (!module.path || !module.build_id ||
	    hash_table__insert(&index->modules, hash, module.id)) {
		free(module.path);
		free(module.build_id);
		return -ENOMEM;
	}
	profile->modules[profile->n_modules++] = module;
	*id = module.id;
	return 0;
}

int profile__add_process(struct profile *profile, __u32 parent, __u32 pid, __u64 start_ns,
			 const char *comm, __u32 *id)
{
	struct profile_process process = { .parent = parent, .pid = pid, .start_ns = start_ns };
	int err;

	if (parent > profile->n_processes)
		return -EINVAL;
	err = reserve(&profile->processes, &profile->index->processes_room, profile->n_processes,
		      sizeof(process));
	if (err)
		return err;
	process.id = profile->n_processes + 1;
	process.comm = strdup(comm);
	if (!process.comm)
		return -ENOMEM;
	profile->processes[profile->n_processes++] = process;
	*id = process.id;
	return 0;
}

static bool match_frame(const void *owner, __u32 id, const void *key)
{
	const struct profile_frame *frame = &((const struct profile *)owner)->frames[id - 1];
	const struct profile_frame *wanted = key;

	return frame->module == wanted->module && frame->offset == wanted->offset;
}

int profile__add_frame(struct profile *profile, __u32 module, __u64 offset, __u32 *id)
{
	struct profile_index *index = profile->index;
	__u64 hash = hash_mix(hash_mix(index->seed, module), offset);
	struct profile_frame frame = { .module = module, .offset = offset };
	__u32 found;
	int err;

	if (module > profile->n_modules)
		return -EINVAL;
	found = hash_table__find(&index->frames, hash, match_frame, profile, &frame);
	if (found) {
		*id = found;
		return 0;
	}
	err = reserve(&profile->frames, &index->frames_room, profile->n_frames, sizeof(frame));
	if (err)
		return err;
	frame.id = profile->n_frames + 1;
	err = hash_table__insert(&index->frames, hash, frame.id);
	if (err)
		return err;
	profile->frames[profile->n_frames++] = frame;
	*id = frame.id;
	return 0;
}

int profile__set_frame_function(struct profile *profile, __u32 frame, const char *function)
{
	char *copy = NULL;

	if (!frame || frame > profile->n_frames)
		return -EINVAL;
	if (function) {
		copy = strdup(function);
		if (!copy)
			return -ENOMEM;
	}
	free(profile->frames[frame - 1].function);
	profile->frames[frame - 1].function = copy;
	return 0;
}

static bool match_stack(const void *owner, __u32 id, const void *key)
{
	const struct profile_stack *stack = &((const struct profile *)owner)->stacks[id - 1];
	const struct profile_stack *wanted = key;

	return stack->end == wanted->end && stack->n_frames == wanted->n_frames &&
	       (!stack->n_frames ||
		!memcmp(stack->frames, wanted->frames, stack->n_frames * sizeof(*stack->frames)));
}

int profile__add_stack(struct profile *profile, const __u32 *frames, size_t n_frames,
		       enum ap_stack_end end, __u32 *id)
{
	struct profile_index *index = profile->index;
	struct profile_stack stack = { .end = end,
				       .n_frames = n_frames,
				       .frames = (__u32 *)frames };
	__u64 hash;
	__u32 found;
	int err;

	if (n_frames > AP_MAX_DEPTH || (unsigned int)end >= AP_STACK_ENDS)
		return -EINVAL;
	for (size_t i = 0; i < n_frames; i++) {
		if (!frames[i] || frames[i] > profile->n_frames)
			return -EINVAL;
	}
	hash = hash_bytes(hash_mix(index->seed, end), frames, n_frames * sizeof(*frames));
	found = hash_table__find(&index->stacks, hash, match_stack, profile, &stack);
	if (found) {
		*id = found;
		return 0;
	}
	err = reserve(&profile->stacks, &index->stacks_room, profile->n_stacks, sizeof(stack));
	if (err)
		return err;
	stack.id = profile->n_stacks + 1;
	stack.frames = NULL;
	if (n_frames) {
		stack.frames = malloc(n_frames * sizeof(*frames));
		if (!stack.frames)
			return -ENOMEM;
		memcpy(stack.frames, frames, n_frames * sizeof(*frames));
	}
	err = hash_table__insert(&index->stacks, hash, stack.id);
	if (err) {
		free(stack.frames);
		return err;
	}
	profile->stacks[profile->n_stacks++] = stack;
	*id = stack.id;
	return 0;
}

static __u64 add_up(__u64 a, __u64 b)
{
	__u64 sum;

	return __builtin_add_overflow(a, b, &sum) || sum > PROFILE_MAX ? PROFILE_MAX : sum;
}

static bool match_count(const void *owner, __u32 id, const void *key)
{
	const struct profile_count *count = &((const struct profile *)owner)->counts[id - 1];
	const struct profile_count *wanted = key;

	return count->process == wanted->process && count->stack == wanted->stack &&
	       count->function == wanted->function;
}

int profile__add_count(struct profile *profile, __u32 process, __u32 stack,
		       enum ap_function function, __u64 calls, __u64 size_bytes)
{
	struct profile_index *index = profile->index;
	struct profile_count count = { .process = process, .stack = stack, .function = function };
	__u64 hash = hash_mix(hash_mix(hash_mix(index->seed, process), stack), function);
	__u32 found;
	int err;

	if (!process || process > profile->n_processes || !stack || stack > profile->n_stacks ||
	    (unsigned int)function >= AP_FUNCTIONS)
		return -EINVAL;
	found = hash_table__find(&index->counts, hash, match_count, profile, &count);
	if (!found) {
		err = reserve(&profile->counts, &index->counts_room, profile->n_counts,
			      sizeof(count));
		if (err)
			return err;
		err = hash_table__insert(&index->counts, hash, profile->n_counts + 1);
		if (err)
			return err;
		profile->counts[profile->n_counts++] = count;
		found = profile->n_counts;
	}
	profile->counts[found - 1].calls = add_up(profile->counts[found - 1].calls, calls);
	profile->counts[found - 1].size_bytes =
		add_up(profile->counts[found - 1].size_bytes, size_bytes);
	return 0;
}

static bool match_meta(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct profile *)owner)->meta[id - 1].key, key);
}

static __u32 find_meta(const struct profile *profile, const char *key)
{
	return hash_table__find(&profile->index->meta, hash_string(profile->index->seed, key),
				match_meta, profile, key);
}

int profile__set_meta(struct profile *profile, const char *key, const char *value)
{
	struct profile_index *index = profile->index;
	__u32 found = find_meta(profile, key);
	struct profile_meta entry;
	int err;

	entry.value = strdup(value);
	if (!entry.value)
		return -ENOMEM;
	if (found) {
		free(profile->meta[found - 1].value);
		profile->meta[found - 1].value = entry.value;
		return 0;
	}
	entry.key = strdup(key);
	err = entry.key ? 0 : -ENOMEM;
	if (!err)
		err = reserve(&profile->meta, &index->meta_room, profile->n_meta, sizeof(entry));
	if (!err)
		err = hash_table__insert(&index->meta, hash_string(index->seed, key),
					 profile->n_meta + 1);
	if (err) {
		free(entry.key);
		free(entry.value);
		return err;
	}
	profile->meta[profile->n_meta++] = entry;
	return 0;
}

const char *profile__meta(const struct profile *profile, const char *key)
{
	__u32 found = find_meta(profile, key);

	return found ? profile->meta[found - 1].value : NULL;
}

static bool match_ledger(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct profile *)owner)->ledger[id - 1].name, key);
}

static __u32 find_ledger(const struct profile *profile, const char *name)
{
	return hash_table__find(&profile->index->ledger, hash_string(profile->index->seed, name),
				match_ledger, profile, name);
}

int profile__set_ledger(struct profile *profile, const char *name, __u64 value)
{
	struct profile_index *index = profile->index;
	__u32 found = find_ledger(profile, name);
	struct profile_ledger_entry entry = { .value = add_up(value, 0) };
	int err;

	if (found) {
		profile->ledger[found - 1].value = entry.value;
		return 0;
	}
	err = reserve(&profile->ledger, &index->ledger_room, profile->n_ledger, sizeof(entry));
	if (err)
		return err;
	entry.name = strdup(name);
	if (!entry.name)
		return -ENOMEM;
	err = hash_table__insert(&index->ledger, hash_string(index->seed, name),
				 profile->n_ledger + 1);
	if (err) {
		free(entry.name);
		return err;
	}
	profile->ledger[profile->n_ledger++] = entry;
	return 0;
}

__u64 profile__ledger(const struct profile *profile, const char *name)
{
	__u32 found = find_ledger(profile, name);

	return found ? profile->ledger[found - 1].value : 0;
}

static void sum_ends(const struct profile *profile, __u64 calls[AP_STACK_ENDS])
{
	memset(calls, 0, AP_STACK_ENDS * sizeof(*calls));
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		enum ap_stack_end end = profile->stacks[count->stack - 1].end;

		calls[end] = add_up(calls[end], count->calls);
	}
}

int profile__settle_ledger(struct profile *profile, __u64 events, const __u64 lost[AP_LOST_REASONS])
{
	__u64 calls[AP_STACK_ENDS], incomplete = 0, all_lost = 0;
	char name[64];
	int err;

	sum_ends(profile, calls);
	for (int i = 0; i < AP_LOST_REASONS; i++) {
		snprintf(name, sizeof(name), "lost_%s", lost_names[i]);
		err = profile__set_ledger(profile, name, lost[i]);
		if (err)
			return err;
		all_lost = add_up(all_lost, lost[i]);
	}
	for (int i = AP_END_COMPLETE + 1; i < AP_STACK_ENDS; i++) {
		snprintf(name, sizeof(name), "incomplete_%s", end_names[i]);
		err = profile__set_ledger(profile, name, calls[i]);
		if (err)
			return err;
		incomplete = add_up(incomplete, calls[i]);
	}
	err = profile__set_ledger(profile, "events", events);
	if (!err)
		err = profile__set_ledger(profile, "lost", all_lost);
	if (!err)
		err = profile__set_ledger(profile, "complete", calls[AP_END_COMPLETE]);
	if (!err)
		err = profile__set_ledger(profile, "incomplete", incomplete);
	if (!err)
		err = profile__set_ledger(profile, "attributed",
					  add_up(calls[AP_END_COMPLETE], incomplete));
	return err;
}

/* What all entries whose names begin with @prefix sum up to. */
static __u64 sum_ledger(const struct profile *profile, const char *prefix)
{
	size_t len = strlen(prefix);
	__u64 sum = 0;

	for (size_t i = 0; i < profile->n_ledger; i++) {
		if (!strncmp(profile->ledger[i].name, prefix, len))
			sum = add_up(sum, profile->ledger[i].value);
	}
	return sum;
}

bool profile__ledger_adds_up(const struct profile *profile)
{
	__u64 attributed = profile__ledger(profile, "attributed");
	__u64 complete = profile__ledger(profile, "complete");
	__u64 incomplete = profile__ledger(profile, "incomplete");
	__u64 lost = profile__ledger(profile, "lost");
	__u64 calls[AP_STACK_ENDS], not_complete = 0;
	char name[64];

	sum_ends(profile, calls);
	for (int i = AP_END_COMPLETE + 1; i < AP_STACK_ENDS; i++) {
		snprintf(name, sizeof(name), "incomplete_%s", end_names[i]);
		if (profile__ledger(profile, name) != calls[i])
			return false;
		not_complete = add_up(not_complete, calls[i]);
	}
	return calls[AP_END_COMPLETE] == complete && not_complete == incomplete &&
	       sum_ledger(profile, "incomplete_") == incomplete &&
	       attributed == add_up(complete, incomplete) && lost == sum_ledger(profile, "lost_") &&
	       profile__ledger(profile, "events") == add_up(attributed, lost);
}

const char *profile__function_name(enum ap_function function)
{
	return (unsigned int)function < AP_FUNCTIONS ? function_names[function] : "unknown";
}

const char *profile__lost_name(enum ap_lost reason)
{
	return (unsigned int)reason < AP_LOST_REASONS ? lost_names[reason] : "unknown";
}

const char *profile__stack_end_name(enum ap_stack_end end)
{
	return (unsigned int)end < AP_STACK_ENDS ? end_names[end] : "unknown";
}

static int find_name(const char *const *names, int n_names, const char *name)
{
	for (int i = 0; i < n_names; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -ENOENT;
}

int profile__function_by_name(const char *name)
{
	return find_name(function_names, AP_FUNCTIONS, name);
}

int profile__stack_end_by_name(const char *name)
{
	return find_name(end_names, AP_STACK_ENDS, name);
}

const char *profile_module__basename(const struct profile_module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash && slash[1] ? slash + 1 : module->path;
}
