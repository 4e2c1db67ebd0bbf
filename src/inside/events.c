// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread adds its events to a chunk that it has to itself, and takes another one when it is full.
 * A handler that jumps, or a kill, may leave an event that has a number and never becomes complete:
 * allocprof misses the number, and counts the event as lost.
 */
#include "events.h"

#include "counting.h"
#include "memory.h"
#include "sys.h"

static struct {
	struct inside_program *program;
	struct inside_events *events; /* NULL: the program has had no event */
	void *parts[INSIDE_EVENT_PARTS];
	__u32 n_parts;
	__u32 hint; /* index of the chunk behind the one that was taken last */
} local;

static struct mapped_array record_keys;

void events__begin(struct inside_program *program)
{
	local.program = program;
	local.events = NULL;
	for (int i = 0; i < INSIDE_EVENT_PARTS; i++)
		local.parts[i] = NULL;
	local.n_parts = local.hint = 0;
}

__u32 events__new_record(const struct thread *thread, __u64 stack, __u64 frames, __u32 function)
{
	struct inside_record_key *key;
	__u32 index;

	key = mapped_array__add(&record_keys, &process.header->record_keys, sizeof(*key), &index);
	if (!key)
		return 0;
	key->program = process.program;
	key->stack = stack;
	key->frames = frames;
	key->function = function;
	memcpy(key->comm, thread->shared->comm, AP_COMM_LEN);
	__atomic_store_n(&key->state, INSIDE_READY, __ATOMIC_RELEASE);
	return index + 1;
}

/* Returns NULL if there is no memory. */
static struct inside_events *get_events(void)
{
	struct inside_events *events = __atomic_load_n(&local.events, __ATOMIC_ACQUIRE),
			     *none = NULL;
	__u64 offset;

	if (likely(events))
		return events;
	events = memory__take(sizeof(*events), &offset);
	if (!events)
		return NULL;
	if (!__atomic_compare_exchange_n(&local.events, &none, events, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return none;
	__atomic_store_n(&local.program->events, offset, __ATOMIC_RELEASE);
	return events;
}

/* Returns how many chunks the first @n parts have. */
static __u32 chunks_of(__u32 n)
{
	return inside_event_part__chunks(n) - INSIDE_FIRST_EVENT_CHUNKS;
}

static bool add_part(struct inside_events *events, __u32 had)
{
	__u32 n = had;
	size_t size;

	if (had >= INSIDE_EVENT_PARTS || had >= process.header->settings.event_parts)
		return false;
	size = inside_event_part__chunks_at(had) +
	       inside_event_part__chunks(had) * sizeof(struct inside_event_chunk);
	if (!memory__add_pages(&local.parts[had], &events->parts[had], size))
		return false;
	__atomic_compare_exchange_n(&local.n_parts, &n, had + 1, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return true;
}

static bool try_chunk(struct thread *thread, const struct inside_events *events, __u32 index)
{
	__u32 part = 31 - __builtin_clz(index / INSIDE_FIRST_EVENT_CHUNKS + 1);
	__u32 at = index - chunks_of(part), none = INSIDE_CHUNK_FREE;
	char *mapped = local.parts[part];
	__u32 *state = (__u32 *)mapped + at;
	struct inside_event_chunk *chunk =
		(struct inside_event_chunk *)(mapped + inside_event_part__chunks_at(part)) + at;

	if (__atomic_load_n(state, __ATOMIC_RELAXED) != INSIDE_CHUNK_FREE ||
	    !__atomic_compare_exchange_n(state, &none, INSIDE_CHUNK_TAKEN, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	/* What the chunk still has of its last use has lower numbers. */
	chunk->first = __atomic_load_n(&events->n, __ATOMIC_RELAXED) + 1;
	thread->chunk_state = state;
	thread->next_event = chunk->events;
	thread->events_end = chunk->events + INSIDE_CHUNK_EVENTS;
	__atomic_store_n(state, INSIDE_CHUNK_USED, __ATOMIC_RELEASE);
	return true;
}

static bool take_chunk(struct thread *thread, struct inside_events *events)
{
	__u32 n, room, first, used;

	do {
		n = __atomic_load_n(&local.n_parts, __ATOMIC_ACQUIRE);
		room = chunks_of(n);
		used = __atomic_load_n(&events->n_taken, __ATOMIC_RELAXED) -
		       __atomic_load_n(&events->n_freed, __ATOMIC_RELAXED);
		first = __atomic_load_n(&local.hint, __ATOMIC_RELAXED);
		for (__u32 i = 0; used < room && i < room; i++) {
			__u32 index = first + i < room ? first + i : first + i - room;

			if (index >= room || !try_chunk(thread, events, index))
				continue;
			__atomic_store_n(&local.hint, index + 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&events->n_taken, 1, __ATOMIC_RELAXED);
			/* allocprof need not be woken again until it has read some of them. */
			if (unlikely(used == chunks_of(process.header->settings.event_parts) / 2))
				memory__wake();
			return true;
		}
	} while (add_part(events, n));
	return false;
}

/* Waits until allocprof has set chunks free. Returns whether the thread has got one. */
static __attribute__((noinline)) bool await_chunk(struct thread *thread,
						  struct inside_events *events)
{
	__u32 freed = __atomic_load_n(&events->n_freed, __ATOMIC_ACQUIRE), before;

	do {
		if (take_chunk(thread, events))
			return true;
		before = freed;
		memory__wake();
		memory__await(&events->n_freed, before);
		freed = __atomic_load_n(&events->n_freed, __ATOMIC_ACQUIRE);
	} while (freed != before);
	return false;
}

static __attribute__((noinline)) bool have_chunk(struct thread *thread,
						 struct inside_events *events)
{
	if (thread->chunk_state)
		__atomic_store_n(thread->chunk_state, INSIDE_CHUNK_FULL, __ATOMIC_RELEASE);
	thread->chunk_state = NULL;
	thread->next_event = thread->events_end = NULL;
	if (take_chunk(thread, events))
		return true;
	return process.header->settings.events == INSIDE_THROTTLED_EVENTS &&
	       await_chunk(thread, events);
}

void events__lose(void)
{
	struct inside_events *events = get_events();

	if (events)
		__atomic_fetch_add(&events->n_lost, 1, __ATOMIC_RELAXED);
	else
		memory__add_gap(INSIDE_GAP_EVENTS);
}

struct event event__take(struct thread *thread)
{
	struct inside_events *events = get_events();
	struct event event = { 0 };

	/* Where a handler has forked, the call that it interrupted goes on in the child, too, with
	 * the parent's chunk. */
	if (unlikely(!events || thread->shared->program != process.program ||
		     (thread->next_event == thread->events_end && !have_chunk(thread, events)))) {
		events__lose();
		return event;
	}
	/* The place is taken before the number: so a place that a handler's jump leaves is not
	 * used again. */
	event.at = thread->next_event++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	event.number = __atomic_add_fetch(&events->n, 1, __ATOMIC_RELAXED);
	return event;
}

static void publish(const struct thread *thread, const struct event *event,
		    const struct inside_event *value)
{
	struct inside_event *at = event->at;

	if (unlikely(!at))
		return;
	at->time_ns = value->time_ns;
	at->address = value->address;
	at->size_bytes = value->size_bytes;
	at->old_address = value->old_address;
	at->old_size_bytes = value->old_size_bytes;
	at->birth_ns = value->birth_ns;
	at->record = value->record;
	at->old_record = value->old_record;
	at->thread = thread->owner->tid;
	at->kind = value->kind;
	at->temporary = value->temporary;
	at->weight = value->weight;
	at->old_weight = value->old_weight;
	__atomic_store_n(&at->number, event->number, __ATOMIC_RELEASE);
}

void event__log_begin(struct thread *thread, const struct event *event,
		      const struct ap_block *block, __u64 address, const struct ap_block *old,
		      __u64 old_address, bool is_followed)
{
	struct inside_event value = {
		.time_ns = block->birth_ns,
		.address = address,
		.size_bytes = block->size_bytes,
		.record = block->record,
		.kind = is_followed ? AP_EVENT_ALLOC : AP_EVENT_UNTRACKED,
		.weight = block->weight,
	};

	if (old) {
		value.kind = AP_EVENT_MOVED;
		value.temporary = thread__ends_temporary(thread, old);
		value.old_address = old_address;
		value.old_size_bytes = old->size_bytes;
		value.birth_ns = old->birth_ns;
		value.old_record = old->record;
		value.old_weight = old->weight;
	}
	publish(thread, event, &value);
}

static void log_block(struct thread *thread, const struct event *event, enum ap_event_kind kind,
		      const struct ap_block *block, __u64 address, __u64 now)
{
	const struct inside_event value = {
		.time_ns = now,
		.address = address,
		.size_bytes = block->size_bytes,
		.birth_ns = block->birth_ns,
		.record = block->record,
		.kind = kind,
		.temporary = kind == AP_EVENT_FREE && thread__ends_temporary(thread, block),
		.weight = block->weight,
	};

	publish(thread, event, &value);
}

void event__log_unseen(struct thread *thread, const struct event *event,
		       const struct ap_block *block, __u64 address, __u64 now)
{
	log_block(thread, event, AP_EVENT_UNSEEN, block, address, now);
}

void event__log_end(struct thread *thread, const struct ap_block *block, __u64 address, __u64 now)
{
	const struct event event = event__take(thread);

	log_block(thread, &event, AP_EVENT_FREE, block, address, now);
}

void event__log_call(struct thread *thread, enum ap_event_kind kind, const struct ap_block *block,
		     __u64 address)
{
	const struct event event = event__take(thread);

	log_block(thread, &event, kind, block, address, block->birth_ns);
}
