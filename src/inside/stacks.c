// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stacks.h"

#include <asm/unistd.h>
#include <linux/mman.h>

#include "memory.h"
#include "record_abi.h"
#include "walk.h"

#define STACK_TRIES 64

static struct {
	struct inside_stack *tables[INSIDE_STACK_TABLES];
} stacks;

/* Both words at once: a process that is killed leaves no hash without its frames. */
static bool insert_both(struct inside_stack *slot, const struct inside_stack *value)
{
	__u64 hash = 0, place = 0;
	bool done;

	__asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
			 : "=q"(done), "+m"(*slot), "+a"(hash), "+d"(place)
			 : "b"(value->hash), "c"(value->place)
			 : "memory", "cc");
	return done;
}

static __u32 table_slots(__u32 table)
{
	return 1U << (INSIDE_FIRST_STACKS + table);
}

static struct inside_stack *map_table(__u32 table)
{
	struct inside_header *header = process.header;
	size_t bytes = table_slots(table) * sizeof(struct inside_stack);
	struct inside_stack *mapped = __atomic_load_n(&stacks.tables[table], __ATOMIC_ACQUIRE);
	__u64 place, none = 0;

	if (mapped)
		return mapped;
	place = __atomic_load_n(&header->stacks[table], __ATOMIC_ACQUIRE);
	if (!place) {
		place = __atomic_fetch_add(&header->next, bytes, __ATOMIC_RELAXED);
		if (!__atomic_compare_exchange_n(&header->stacks[table], &none, place, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			place = none;
	}
	mapped = memory__map(place, bytes);
	if (mapped)
		__atomic_store_n(&stacks.tables[table], mapped, __ATOMIC_RELEASE);
	return mapped;
}

/* Copies the frames to shared memory; 0 if there is no room. */
static __u64 write_frames(const struct walker *walker, __u64 hash)
{
	struct ap_stack_record *record;
	__u64 place;

	record = memory__take(sizeof(*record) + walker->n * sizeof(struct ap_frame), &place);
	if (!record)
		return 0;
	*record = (struct ap_stack_record){
		.type = AP_RECORD_STACK,
		.stack = hash,
		.process = process.image,
		.end = walker->end,
	};
	record->n_frames = walker__frames(walker, (struct ap_frame *)(record + 1));
	return place;
}

/* Whether the stack is published now. */
static bool publish(const struct walker *walker, __u64 hash)
{
	struct inside_stack value = { .hash = hash };

	for (__u32 table = 0; table < INSIDE_STACK_TABLES; table++) {
		__u32 *n = &process.header->n_stacks[table], mask = table_slots(table) - 1;
		struct inside_stack *slots = map_table(table);

		if (!slots)
			return false;
		for (__u32 i = 0; i < STACK_TRIES; i++) {
			struct inside_stack *slot = &slots[(hash + i) & mask];
			__u64 has = __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE);

			if (has == hash)
				return true;
			if (has)
				continue;
			/* It is in none of the fuller tables, or it will be in two. */
			if (__atomic_load_n(n, __ATOMIC_RELAXED) > mask / 2)
				break;
			if (!value.place)
				value.place = write_frames(walker, hash);
			if (!value.place)
				return false;
			if (insert_both(slot, &value)) {
				__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
				return true;
			}
			if (__atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE) == hash)
				return true;
		}
	}
	return false;
}

#define FIRST_COUNTS_SHIFT 5

/* From this size on a table has pages of its own. */
#define OWN_PAGES_BYTES (16 << 10)

static struct inside_count *take_counts(__u32 shift, __u64 *place)
{
	size_t bytes = sizeof(struct inside_count) << shift;

	return bytes < OWN_PAGES_BYTES ? memory__take(bytes, place)
				       : memory__take_pages(bytes, place);
}

static struct inside_count *free_slot(struct inside_count *counts, __u32 shift, __u64 stack,
				      __u32 function)
{
	__u64 mask = (1ULL << shift) - 1;

	for (__u64 i = stack + function;; i++)
		if (!counts[i & mask].stack)
			return &counts[i & mask];
}

/* A table twice as large, with all that the thread has counted. allocprof sees one or the other. */
static bool grow(struct thread *thread)
{
	__u32 shift = thread->counts ? thread->counts_shift + 1 : FIRST_COUNTS_SHIFT;
	size_t old_bytes = sizeof(struct inside_count) << thread->counts_shift;
	struct inside_count *old = thread->counts, *counts;
	__u64 place;

	if (shift > INSIDE_MAX_SHIFT)
		return false;
	counts = take_counts(shift, &place);
	if (!counts)
		return false;
	for (__u64 i = 0; old && i < 1ULL << thread->counts_shift; i++)
		if (old[i].stack)
			*free_slot(counts, shift, old[i].stack, old[i].function) = old[i];
	__atomic_store_n(&thread->shared->counts, place | shift, __ATOMIC_RELEASE);
	thread->counts = counts;
	thread->counts_shift = shift;
	if (old && old_bytes >= OWN_PAGES_BYTES) {
		sys(__NR_madvise, (long)old, old_bytes, MADV_REMOVE, 0, 0, 0);
		sys__unmap(old, old_bytes);
	}
	return true;
}

static __attribute__((noinline)) struct inside_count *new_count(struct thread *thread, __u64 stack,
								__u32 function)
{
	struct inside_count *count;

	if (!thread->counts || thread->n_counts >= (1U << thread->counts_shift) / 2)
		if (!grow(thread))
			return NULL;
	if (!publish(thread->walker, stack))
		return NULL;
	count = free_slot(thread->counts, thread->counts_shift, stack, function);
	count->function = function;
	__atomic_store_n(&count->stack, stack, __ATOMIC_RELEASE);
	thread->n_counts++;
	return count;
}

static inline struct inside_count *find_count(struct thread *thread, __u64 stack, __u32 function)
{
	__u64 mask = (1ULL << thread->counts_shift) - 1;

	if (unlikely(!thread->counts))
		return new_count(thread, stack, function);
	for (__u64 i = stack + function;; i++) {
		struct inside_count *count = &thread->counts[i & mask];

		if (likely(count->stack == stack && count->function == function))
			return count;
		if (!count->stack)
			return new_count(thread, stack, function);
	}
}

void stacks__count(struct thread *thread, __u32 function, __u64 size_bytes, const __u64 *frame)
{
	struct inside_count *count = thread->last_count;
	__u64 hash;

	counter__add(&thread->shared->stats[AP_STAT_EVENTS], 1);
	hash = walker__walk(thread->walker, frame[1], (__u64)(frame + 2), frame[0]);
	if (unlikely(!hash)) /* marks a free slot */
		hash = 1;
	if (!count || count->stack != hash || count->function != function) {
		count = find_count(thread, hash, function);
		if (unlikely(!count)) {
			counter__add(&thread->shared->stats[AP_STAT_LOST + AP_LOST_COUNTS_FULL], 1);
			return;
		}
		thread->last_count = count;
	}
	counter__add(&count->calls, 1);
	counter__add(&count->size_bytes, size_bytes);
}
