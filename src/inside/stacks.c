// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stacks.h"

#include <asm/unistd.h>
#include <linux/mman.h>

#include "async.h"
#include "async_code.h"
#include "counting.h"
#include "memory.h"
#include "python.h"
#include "record_abi.h"
#include "walk.h"

#define STACK_TRIES 64

static struct {
	struct inside_stack *tables[INSIDE_STACK_TABLES];
} stacks;

static __u32 table_slots(__u32 table)
{
	return 1U << (INSIDE_FIRST_STACKS + table);
}

static struct inside_stack *map_table(__u32 table)
{
	struct inside_header *header = process.header;
	size_t bytes = table_slots(table) * sizeof(struct inside_stack);
	struct inside_stack *mapped = __atomic_load_n(&stacks.tables[table], __ATOMIC_ACQUIRE);
	__u64 offset, none = 0;

	if (mapped || memory__lacks(bytes))
		return mapped;
	offset = __atomic_load_n(&header->stacks[table], __ATOMIC_ACQUIRE);
	if (!offset) {
		offset = memory__reserve(bytes);
		if (!offset)
			return NULL;
		if (!__atomic_compare_exchange_n(&header->stacks[table], &none, offset, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			offset = none;
	}
	mapped = memory__map(offset, bytes);
	if (mapped)
		__atomic_store_n(&stacks.tables[table], mapped, __ATOMIC_RELEASE);
	return mapped;
}

void stacks__forget(void)
{
	memset(&stacks, 0, sizeof(stacks));
}

static __u64 write_names(const struct python_names *names, __u64 hash);
static __u64 write_frames(const struct walker *walker, __u64 hash);

/* Stores the names of a frame of Python, or the walker's stack if @names is NULL, under a hash. No function is handed down for that: an
 * address of code that stays on the stack looks like that of a thread that a signal has interrupted there, and then the memory of a
 * process that is left stays mapped. */
static __u64 publish(__u64 hash, const struct walker *walker, const struct python_names *names)
{
	struct inside_stack value = { .hash = hash };

	for (__u32 table = 0; table < INSIDE_STACK_TABLES; table++) {
		__u32 *n = &process.header->n_stacks[table], mask = table_slots(table) - 1;
		struct inside_stack *slots = map_table(table);

		if (!slots)
			return 0;
		for (__u32 i = 0; i < STACK_TRIES; i++) {
			struct inside_stack *slot = &slots[(hash + i) & mask];
			__u64 has = __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE);

			if (has == hash)
				return slot->offset;
			if (has)
				continue;
			/* The stack was in none of the fuller tables. If another thread has added
			 * it to one of them just now, it is in two tables. */
			if (__atomic_load_n(n, __ATOMIC_RELAXED) > mask / 2)
				break;
			if (!value.offset)
				value.offset = names ? write_names(names, hash)
						     : write_frames(walker, hash);
			if (!value.offset)
				return 0;
			/* One instruction writes both words, so that a process that is killed
			 * leaves no hash without its frames. */
			if (pair__replace(&slot->hash, 0, 0, value.hash, value.offset)) {
				__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
				return value.offset;
			}
			if (__atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE) == hash)
				return slot->offset;
		}
	}
	return 0;
}

/* Returns the offset, or 0 if there is no room, as the next one does. */
static __u64 write_names(const struct python_names *names, __u64 hash)
{
	struct ap_python_record *record;
	__u64 offset;
	char *text;

	record = memory__take(sizeof(*record) + names->n_name + names->n_file, &offset);
	if (!record)
		return 0;
	*record = (struct ap_python_record){
		.type = AP_RECORD_PYTHON,
		.line = names->line,
		.id = hash,
		.n_name = names->n_name,
		.n_file = names->n_file,
	};
	text = (char *)(record + 1);
	memcpy(text, names->name, names->n_name);
	memcpy(text + names->n_name, names->file, names->n_file);
	return offset;
}

/* Stores what the stack's frames of Python are called. Those whose names find no room are missing in the recording. */
static void publish_python(const struct walker *walker)
{
	const struct python_names *names;

	for (__u32 i = 0; (names = python__names(walker, i)); i++)
		(void)publish(names->id, walker, names);
}

/* Copies the frames to shared memory. */
static __u64 write_frames(const struct walker *walker, __u64 hash)
{
	bool has_python = unlikely(walker->python && walker->python->is_used);
	/* A stack with both has the frames of Python only. */
	bool has_async = unlikely(!has_python && walker->async && walker->async->n);
	__u32 n = has_python  ? python__frames(walker, NULL, NULL)
		  : has_async ? async__frames(walker, NULL, NULL)
			      : walker->n;
	struct ap_stack_record *record;
	__u64 offset;

	if (has_python)
		publish_python(walker);
	record = memory__take(sizeof(*record) + n * sizeof(struct ap_frame), &offset);
	if (!record)
		return 0;
	*record = (struct ap_stack_record){
		.type = AP_RECORD_STACK,
		.stack = hash,
		.process = process.program,
		.end = walker->end,
	};
	record->n_frames =
		has_python  ? python__frames(walker, (struct ap_frame *)(record + 1), &record->end)
		: has_async ? async__frames(walker, (struct ap_frame *)(record + 1), &record->end)
			    : walker__frames(walker, (struct ap_frame *)(record + 1));
	return offset;
}

__u64 stacks__publish(const struct walker *walker, __u64 hash)
{
	return publish(hash, walker, NULL);
}

static __u64 count_hash(const void *entry)
{
	const struct inside_count *count = entry;

	return count->stack ? (count->stack + count->function) | 1ULL << 63 : 0;
}

static const struct table_kind counts_kind = { sizeof(struct inside_count), count_hash };
static const struct table_kind sampled_kind = { sizeof(struct inside_sampled_count), count_hash };

static __attribute__((noinline)) struct inside_count *new_count(struct thread *thread, __u64 stack,
								__u32 function)
{
	struct inside_count *count;

	if (!table__reserve(&thread->counts, process.samples ? &sampled_kind : &counts_kind,
			    &thread->shared->counts) ||
	    !stacks__publish(thread->walker, stack))
		return NULL;
	count = table__first(&thread->counts, process.count_bytes, stack + function);
	while (count->stack)
		count = table__next(&thread->counts, process.count_bytes, count);
	count->function = function;
	thread->counts.n++;
	__atomic_store_n(&count->stack, stack, __ATOMIC_RELEASE);
	return count;
}

static inline struct inside_count *find_count(struct thread *thread, __u64 stack, __u32 function)
{
	struct inside_count *count;

	if (unlikely(!thread->counts.entries))
		return new_count(thread, stack, function);
	count = table__first(&thread->counts, process.count_bytes, stack + function);
	for (; count->stack; count = table__next(&thread->counts, process.count_bytes, count))
		if (count->stack == stack && count->function == function)
			return count;
	return new_count(thread, stack, function);
}

__u64 stacks__walk(struct thread *thread, const __u64 *frame)
{
	__u64 hash = walker__walk(thread->walker, frame[1], frame__sp(frame), frame[0]);

	if (unlikely(python_is_there))
		hash = python__walk(thread->walker, hash);
	if (unlikely(async_is_there))
		hash = async__walk(thread->walker, hash);

	/* 0 marks a free slot. */
	return likely(hash) ? hash : 1;
}

void stacks__count(struct thread *thread, __u32 function, __u64 size_bytes, __u32 weight,
		   const __u64 *frame)
{
	struct inside_count *count = thread->last_count;
	__u64 hash = stacks__walk(thread, frame);

	if (!count || count->stack != hash || count->function != function) {
		count = find_count(thread, hash, function);
		if (unlikely(!count)) {
			counter__add(&thread->shared->stats[AP_STAT_EVENTS], 1);
			counter__add(&thread->shared->stats[AP_STAT_LOST + memory__lost()], 1);
			return;
		}
		thread->last_count = count;
	}
	/* These counters change together, with nothing in between that a signal handler could
	 * leave by a jump. */
	counter__add(&thread->shared->stats[AP_STAT_EVENTS], 1);
	counter__add(&count->calls, weight);
	counter__add_bytes(&count->size_bytes, bytes_of(weight, size_bytes));
	if (unlikely(process.samples))
		estimate__add(&((struct inside_sampled_count *)count)->estimate, weight,
			      size_bytes);
}
