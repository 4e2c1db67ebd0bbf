// SPDX-License-Identifier: GPL-3.0-or-later
/* Works out which mappings are live from what each system call did to them. */
#include "live_mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "array.h"
#include "hash_table.h"
#include "mapping_ranges.h"

/* What one call has mapped. Its number, from 1, names it in the ranges, and is reused. */
struct origin {
	__u32 number; /* of the record; 0: this origin is free */
	__u32 thread;
	__u64 id; /* never reused */
	__u64 birth_ns;
	__u64 size_bytes;
	__u64 left_bytes; /* what has not ended */
	enum ap_function function;
	bool is_stack;
	__u32 next_free;
};

/* What was mapped by the calls of a record. */
struct sums {
	struct mapping_sums *sums; /* NULL: none, or they were retired */
	/* In address spaces that are in use. */
	__u64 present, present_bytes;
	/* What was present when the peak's generation began; if @generation is not the last one,
	 * nothing has changed since. */
	__u64 generation, peak, peak_bytes;
};

struct thread {
	__u32 id;
	__u64 last_origin; /* id of what it has mapped last */
};

struct live_mappings {
	struct live_mappings_options options;
	struct mapping_ranges *spaces; /* indexed by the address space's number */
	size_t n_spaces;
	struct origin *origins;
	size_t n_origins, origins_room;
	__u32 first_free; /* number of the first free origin, 0 if none is */
	__u64 last_id;
	struct sums *sums; /* indexed by the record's number */
	size_t n_sums;
	struct thread *threads;
	size_t n_threads, threads_room;
	struct hash_table thread_index; /* thread id -> index in threads + 1 */
	struct live_mapping *list;
	size_t n_list, list_room;
	struct mapping_totals totals;
	__u64 generation; /* of the peak */
};

struct live_mappings *live_mappings__new(const struct live_mappings_options *options)
{
	struct live_mappings *mappings = calloc(1, sizeof(*mappings));

	if (mappings)
		mappings->options = *options;
	return mappings;
}

void live_mappings__free(struct live_mappings *mappings)
{
	if (!mappings)
		return;
	for (size_t i = 0; i < mappings->n_spaces; i++)
		mapping_ranges__release(&mappings->spaces[i]);
	for (size_t i = 0; i < mappings->n_sums; i++)
		free(mappings->sums[i].sums);
	free(mappings->spaces);
	free(mappings->origins);
	free(mappings->sums);
	free(mappings->threads);
	hash_table__release(&mappings->thread_index);
	free(mappings->list);
	free(mappings);
}

static int get_sums(struct live_mappings *mappings, __u32 number, struct sums **out)
{
	struct sums *sums;

	if (array__reserve_zeroed(&mappings->sums, &mappings->n_sums, (size_t)number + 1,
				  sizeof(*mappings->sums)))
		return -ENOMEM;
	sums = &mappings->sums[number];
	if (!sums->sums)
		sums->sums = calloc(1, sizeof(*sums->sums));
	if (!sums->sums)
		return -ENOMEM;
	*out = sums;
	return 0;
}

static int get_space(struct live_mappings *mappings, __u32 number, struct mapping_ranges **out)
{
	if (array__reserve_zeroed(&mappings->spaces, &mappings->n_spaces, (size_t)number + 1,
				  sizeof(*mappings->spaces)))
		return -ENOMEM;
	*out = &mappings->spaces[number];
	return 0;
}

static bool match_thread(const void *owner, __u32 id, const void *key)
{
	return ((const struct live_mappings *)owner)->threads[id - 1].id == *(const __u32 *)key;
}

/* Returns the thread, which is added if it is new; NULL if there is no memory. */
static struct thread *get_thread(struct live_mappings *mappings, __u32 id)
{
	__u64 hash = hash_mix(0, id);
	__u32 found = hash_table__find(&mappings->thread_index, hash, match_thread, mappings, &id);

	if (found)
		return &mappings->threads[found - 1];
	if (array__reserve(&mappings->threads, &mappings->threads_room, mappings->n_threads + 1,
			   sizeof(*mappings->threads)) ||
	    hash_table__insert(&mappings->thread_index, hash, mappings->n_threads + 1))
		return NULL;
	mappings->threads[mappings->n_threads] = (struct thread){ .id = id };
	return &mappings->threads[mappings->n_threads++];
}

static unsigned int bucket_of(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

/* To be called before what is present of a record changes. */
static void note_peak(const struct live_mappings *mappings, struct sums *sums)
{
	if (sums->generation == mappings->generation)
		return;
	sums->generation = mappings->generation;
	sums->peak = sums->present;
	sums->peak_bytes = sums->present_bytes;
}

/* To be called before something ends: what is present now may be the most so far, and then begins a
 * generation. So the records' parts of the peak are those of one moment, and exact. */
static void begin_generation(struct live_mappings *mappings)
{
	struct mapping_totals *totals = &mappings->totals;

	if (totals->live_bytes <= totals->peak_bytes)
		return;
	totals->peak_bytes = totals->live_bytes;
	mappings->generation++;
}

static int new_origin(struct live_mappings *mappings, const struct origin *origin, __u32 *number)
{
	if (mappings->first_free) {
		*number = mappings->first_free;
		mappings->first_free = mappings->origins[*number - 1].next_free;
	} else {
		if (mappings->n_origins == UINT32_MAX ||
		    array__reserve(&mappings->origins, &mappings->origins_room,
				   mappings->n_origins + 1, sizeof(*mappings->origins)))
			return -ENOMEM;
		*number = ++mappings->n_origins;
	}
	mappings->origins[*number - 1] = *origin;
	return 0;
}

static void free_origin(struct live_mappings *mappings, __u32 number)
{
	mappings->origins[number - 1] = (struct origin){ .next_free = mappings->first_free };
	mappings->first_free = number;
}

/* Adds to the record's sums what has ended of an origin. */
static void add_end(struct sums *sums, const struct origin *origin, const struct mapping_end *end,
		    bool is_temporary)
{
	struct profile_blocks *blocks = &sums->sums->blocks;

	switch (end->how) {
	case MAPPING_UNMAPPED:
		blocks->frees += end->mappings;
		blocks->freed_bytes += end->size_bytes;
		if (end->mappings)
			blocks->lifetimes[bucket_of(end->end_ns - end->birth_ns)]++;
		if (end->mappings && is_temporary) {
			blocks->temporary++;
			blocks->temporary_bytes += origin->size_bytes;
		}
		break;
	case MAPPING_DISCARDED:
		blocks->discarded += end->mappings;
		blocks->discarded_bytes += end->size_bytes;
		break;
	case MAPPING_LEFT:
		if (!sums->sums->oldest_ns || origin->birth_ns < sums->sums->oldest_ns)
			sums->sums->oldest_ns = origin->birth_ns;
		break;
	}
}

static void add_end_to_totals(struct mapping_totals *totals, const struct mapping_end *end)
{
	totals->live_bytes -= end->size_bytes;
	if (end->how == MAPPING_UNMAPPED) {
		totals->frees += end->mappings;
		totals->freed_bytes += end->size_bytes;
	} else if (end->how == MAPPING_DISCARDED) {
		totals->discarded += end->mappings;
		totals->discarded_bytes += end->size_bytes;
	}
}

/* Ends @size_bytes of an origin. @thread, 0 if there is none, has ended them. */
static int end_bytes(struct live_mappings *mappings, __u32 number, __u64 size_bytes, int how,
		     __u64 end_ns, __u32 thread)
{
	struct origin *origin = &mappings->origins[number - 1];
	struct mapping_end end = {
		.number = origin->number,
		.birth_ns = origin->birth_ns,
		.end_ns = end_ns > origin->birth_ns ? end_ns : origin->birth_ns,
		.size_bytes = size_bytes,
		.mappings = origin->left_bytes == size_bytes,
		.how = how,
	};
	const struct thread *ending = thread ? get_thread(mappings, thread) : NULL;
	struct sums *sums;
	int err = get_sums(mappings, origin->number, &sums);

	if (err || (thread && !ending))
		return -ENOMEM;
	begin_generation(mappings);
	note_peak(mappings, sums);
	sums->present -= end.mappings;
	sums->present_bytes -= size_bytes;
	origin->left_bytes -= size_bytes;
	add_end(sums, origin, &end,
		ending && origin->thread == thread && ending->last_origin == origin->id);
	add_end_to_totals(&mappings->totals, &end);
	err = mappings->options.on_end(mappings->options.context, &end);
	if (end.mappings)
		free_origin(mappings, number);
	return err;
}

/*
 * Moves what is mapped in the range to @taken. What came there after @begin_ns, when the system
 * call was entered, is not what the call has unmapped: another thread has mapped it since the
 * kernel carried the call out, and stays. 0: all goes.
 */
static int take(struct mapping_ranges *space, __u64 begin, __u64 size_bytes, __u64 begin_ns,
		struct mapping_ranges *taken)
{
	struct mapping_ranges all = { 0 };
	const struct mapping_range *range;
	int err;

	if (size_bytes > UINT64_MAX - begin)
		return 0;
	err = mapping_ranges__take(space, begin, begin + size_bytes, &all);
	for (__u64 at = 0; !err && (range = mapping_ranges__from(&all, at)); at = range->end)
		err = mapping_ranges__add(begin_ns && range->placed_ns > begin_ns ? space : taken,
					  range);
	mapping_ranges__release(&all);
	return err;
}

/* Ends all of @ranges, which are not mapped any more. */
static int end_ranges(struct live_mappings *mappings, struct mapping_ranges *ranges,
		      const struct ap_mapping_record *change)
{
	__u64 end_ns = change->begin_ns ? change->begin_ns : change->end_ns;
	const struct mapping_range *range;
	int err = 0;

	for (__u64 at = 0; !err && (range = mapping_ranges__from(ranges, at)); at = range->end)
		err = end_bytes(mappings, range->origin, range->end - range->begin,
				MAPPING_UNMAPPED, end_ns, change->thread);
	mapping_ranges__release(ranges);
	return err;
}

static int unmap(struct live_mappings *mappings, struct mapping_ranges *space, __u64 begin,
		 __u64 size_bytes, __u64 begin_ns, const struct ap_mapping_record *change)
{
	struct mapping_ranges taken = { 0 };
	int err = take(space, begin, size_bytes, begin_ns, &taken);

	if (err)
		mapping_ranges__release(&taken);
	return err ? err : end_ranges(mappings, &taken, change);
}

/* Adds what a counted call has mapped, where nothing is. */
static int map(struct live_mappings *mappings, struct mapping_ranges *space, __u64 begin,
	       __u64 size_bytes, const struct ap_mapping_record *change, __u32 number)
{
	const struct origin origin = {
		.number = number,
		.thread = change->thread,
		.id = ++mappings->last_id,
		.birth_ns = change->end_ns,
		.size_bytes = size_bytes,
		.left_bytes = size_bytes,
		.function = change->function,
		.is_stack = change->is_stack,
	};
	struct mapping_range range = {
		.begin = begin,
		.end = begin + size_bytes,
		.placed_ns = change->end_ns,
		.protection = change->protection,
		.was_executable = change->protection & PROT_EXEC,
	};
	struct thread *thread = get_thread(mappings, change->thread);
	struct sums *sums;
	int err = thread ? get_sums(mappings, number, &sums) : -ENOMEM;

	if (!err)
		err = new_origin(mappings, &origin, &range.origin);
	if (!err)
		err = mapping_ranges__add(space, &range);
	if (err)
		return err;
	thread->last_origin = origin.id;
	note_peak(mappings, sums);
	sums->present++;
	sums->present_bytes += size_bytes;
	sums->sums->blocks.allocations++;
	sums->sums->blocks.size_bytes += size_bytes;
	sums->sums->blocks.sizes[bucket_of(size_bytes)]++;
	mappings->totals.allocations++;
	mappings->totals.size_bytes += size_bytes;
	mappings->totals.live_bytes += size_bytes;
	return 0;
}

/* What was there before is replaced, whoever has mapped it. */
static int handle_mapped(struct live_mappings *mappings, struct mapping_ranges *space,
			 const struct ap_mapping_record *change, __u32 number)
{
	int err = unmap(mappings, space, change->address, change->size_bytes, 0, change);

	if (!err && number && change->is_anonymous && change->size_bytes)
		err = map(mappings, space, change->address, change->size_bytes, change, number);
	return err;
}

/* Puts ranges that begin at @from to @to. */
static int put(struct mapping_ranges *space, struct mapping_ranges *moved, __u64 from, __u64 to,
	       __u64 now_ns)
{
	const struct mapping_range *range;
	int err = 0;

	for (__u64 at = 0; !err && (range = mapping_ranges__from(moved, at)); at = range->end) {
		struct mapping_range placed = *range;

		placed.begin += to - from;
		placed.end += to - from;
		if (to != from)
			placed.placed_ns = now_ns;
		err = mapping_ranges__add(space, &placed);
	}
	mapping_ranges__release(moved);
	return err;
}

/* A mapping that moves stays whose it was; what it grows by is of the call. */
static int handle_moved(struct live_mappings *mappings, struct mapping_ranges *space,
			const struct ap_mapping_record *change, __u32 number)
{
	__u64 old_bytes = change->keeps_old ? 0 : change->old_bytes;
	__u64 kept_bytes = old_bytes < change->size_bytes ? old_bytes : change->size_bytes;
	__u64 grown_bytes = change->size_bytes - kept_bytes;
	struct mapping_ranges moved = { 0 };
	int err = take(space, change->old_address, kept_bytes, change->begin_ns, &moved);

	if (!err && old_bytes > kept_bytes)
		err = unmap(mappings, space, change->old_address + kept_bytes,
			    old_bytes - kept_bytes, change->begin_ns, change);
	if (!err)
		err = unmap(mappings, space, change->address, change->size_bytes, 0, change);
	if (!err)
		err = put(space, &moved, change->old_address, change->address, change->end_ns);
	mapping_ranges__release(&moved);
	if (!err && number && change->is_anonymous && grown_bytes)
		err = map(mappings, space, change->address + kept_bytes, grown_bytes, change,
			  number);
	return err;
}

/* Notes the protection of a range, or that it was given back. */
static int handle_attribute(struct mapping_ranges *space, const struct ap_mapping_record *change)
{
	struct mapping_ranges taken = { 0 };
	const struct mapping_range *range;
	int err = take(space, change->address, change->size_bytes, 0, &taken);

	for (__u64 at = 0; !err && (range = mapping_ranges__from(&taken, at)); at = range->end) {
		struct mapping_range changed = *range;

		if (change->change == AP_MAPPING_ADVISED) {
			changed.was_given_back = true;
		} else {
			changed.protection = change->protection;
			changed.was_executable |= (change->protection & PROT_EXEC) != 0;
		}
		err = mapping_ranges__add(space, &changed);
	}
	mapping_ranges__release(&taken);
	return err;
}

/* Counts what became of a call that is counted; one that maps memory is counted where it does. */
static int count_call(struct live_mappings *mappings, const struct ap_mapping_record *change,
		      __u32 number)
{
	__u64 old_bytes = change->keeps_old ? 0 : change->old_bytes;
	struct sums *sums;
	int err = get_sums(mappings, number, &sums);

	if (err)
		return err;
	if (change->failed) {
		sums->sums->blocks.failed++;
		mappings->totals.failed++;
	} else if (change->change == AP_MAPPING_UNMAPPED ||
		   (change->change == AP_MAPPING_MOVED && change->size_bytes <= old_bytes)) {
		mappings->totals.released++;
	}
	return 0;
}

int live_mappings__handle(struct live_mappings *mappings, const struct ap_mapping_record *change,
			  __u32 number)
{
	struct mapping_ranges *space;
	int err = get_space(mappings, change->space, &space);

	mappings->totals.changes++;
	if (!err && number)
		err = count_call(mappings, change, number);
	if (err)
		return err;
	switch (change->change) {
	case AP_MAPPING_MAPPED:
		return handle_mapped(mappings, space, change, number);
	case AP_MAPPING_UNMAPPED:
		return unmap(mappings, space, change->address, change->size_bytes, change->begin_ns,
			     change);
	case AP_MAPPING_MOVED:
		return handle_moved(mappings, space, change, number);
	case AP_MAPPING_PROTECTED:
	case AP_MAPPING_ADVISED:
		return handle_attribute(space, change);
	}
	return 0;
}

static enum mapping_kind kind_of(const struct origin *origin, const struct mapping_range *range)
{
	if (origin->function == AP_BRK)
		return MAPPING_HEAP;
	if (origin->is_stack)
		return MAPPING_STACK;
	if (range->was_executable)
		return MAPPING_CODE;
	return range->protection ? MAPPING_OTHER : MAPPING_RESERVED;
}

/* Adds a range that is live at the end to the list. */
static int list_range(struct live_mappings *mappings, const struct mapping_range *range)
{
	const struct origin *origin = &mappings->origins[range->origin - 1];

	if (array__reserve(&mappings->list, &mappings->list_room, mappings->n_list + 1,
			   sizeof(*mappings->list)))
		return -ENOMEM;
	mappings->list[mappings->n_list++] = (struct live_mapping){
		.number = origin->number,
		.mapping = {
			.address = range->begin,
			.size_bytes = range->end - range->begin,
			.kind = kind_of(origin, range),
			.was_given_back = range->was_given_back,
		},
	};
	return 0;
}

static int end_all(struct live_mappings *mappings, struct mapping_ranges *space, __u64 end_ns,
		   int how)
{
	const struct mapping_range *range;
	int err = 0;

	for (__u64 at = 0; !err && (range = mapping_ranges__from(space, at)); at = range->end) {
		if (how == MAPPING_LEFT)
			err = list_range(mappings, range);
		if (!err)
			err = end_bytes(mappings, range->origin, range->end - range->begin, how,
					end_ns, 0);
	}
	mapping_ranges__release(space);
	return err;
}

int live_mappings__end_space(struct live_mappings *mappings, __u32 space, __u64 end_ns,
			     bool is_discarded)
{
	if (space >= mappings->n_spaces)
		return 0;
	return end_all(mappings, &mappings->spaces[space], end_ns,
		       is_discarded ? MAPPING_DISCARDED : MAPPING_LEFT);
}

int live_mappings__finish(struct live_mappings *mappings, __u64 end_ns)
{
	int err = 0;

	begin_generation(mappings);
	for (size_t i = 0; i < mappings->n_spaces && !err; i++)
		err = end_all(mappings, &mappings->spaces[i], end_ns, MAPPING_LEFT);
	return err;
}

const struct mapping_sums *live_mappings__sums(const struct live_mappings *mappings, __u32 number)
{
	return number < mappings->n_sums ? mappings->sums[number].sums : NULL;
}

void live_mappings__retire(struct live_mappings *mappings, __u32 number)
{
	if (number >= mappings->n_sums)
		return;
	free(mappings->sums[number].sums);
	mappings->sums[number].sums = NULL;
}

void live_mappings__peak(const struct live_mappings *mappings, __u32 number, __u64 *peak,
			 __u64 *peak_bytes)
{
	const struct sums *sums = &mappings->sums[number];
	bool has_changed = sums->generation == mappings->generation;

	*peak = has_changed ? sums->peak : sums->present;
	*peak_bytes = has_changed ? sums->peak_bytes : sums->present_bytes;
}

__u32 live_mappings__n_numbers(const struct live_mappings *mappings)
{
	return mappings->n_sums;
}

const struct live_mapping *live_mappings__list(const struct live_mappings *mappings, size_t *n)
{
	*n = mappings->n_list;
	return mappings->list;
}

const struct mapping_totals *live_mappings__totals(const struct live_mappings *mappings)
{
	return &mappings->totals;
}
