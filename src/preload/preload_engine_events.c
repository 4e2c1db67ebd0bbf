// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Passes the events of processes to the event collector, as the records that the programs of bpf/
 * send. Processes do not number blocks: a block is told from all others by its address and the time
 * at which it was allocated, and gets its number here.
 */
#include "preload_engine_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "collector.h"
#include "event_collector.h"
#include "event_log.h"
#include "preload_internal.h"
#include "profile.h"
#include "target.h"

struct block_id {
	__u64 address, birth_ns;
	__u64 id; /* 0: the slot is free */
};

/* The blocks of a program that are alive: open addressing, never more than three quarters full. */
struct block_ids {
	struct block_id *slots;
	size_t n, room; /* @room is 0 or a power of two */
	__u64 seed;
};

#define FIRST_ROOM 256

static size_t slot_of(const struct block_ids *ids, __u64 address, __u64 birth_ns)
{
	return hash_mix(hash_mix(ids->seed, address), birth_ns) & (ids->room - 1);
}

/* Returns the block's slot, or the free one where it belongs. */
static struct block_id *find(const struct block_ids *ids, __u64 address, __u64 birth_ns)
{
	size_t at = slot_of(ids, address, birth_ns);

	while (ids->slots[at].id &&
	       (ids->slots[at].address != address || ids->slots[at].birth_ns != birth_ns))
		at = (at + 1) & (ids->room - 1);
	return &ids->slots[at];
}

static int grow(struct block_ids *ids)
{
	struct block_ids grown = {
		.room = ids->room ? 2 * ids->room : FIRST_ROOM,
		.n = ids->n,
		.seed = ids->room ? ids->seed : hash_seed(),
	};

	grown.slots = calloc(grown.room, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < ids->room; i++)
		if (ids->slots[i].id)
			*find(&grown, ids->slots[i].address, ids->slots[i].birth_ns) =
				ids->slots[i];
	free(ids->slots);
	*ids = grown;
	return 0;
}

static int put(struct block_ids *ids, __u64 address, __u64 birth_ns, __u64 id)
{
	struct block_id *slot;

	if (4 * (ids->n + 1) > 3 * ids->room && grow(ids))
		return -ENOMEM;
	slot = find(ids, address, birth_ns);
	ids->n += !slot->id;
	*slot = (struct block_id){ address, birth_ns, id };
	return 0;
}

/* Removes the block. Returns its id, or 0. */
static __u64 take(struct block_ids *ids, __u64 address, __u64 birth_ns)
{
	struct block_id *slot;
	size_t hole, at;
	__u64 id;

	if (!ids->room)
		return 0;
	slot = find(ids, address, birth_ns);
	id = slot->id;
	if (!id)
		return 0;
	hole = slot - ids->slots;
	/* Blocks behind it that are searched for from before it move up. */
	for (at = (hole + 1) & (ids->room - 1); ids->slots[at].id;
	     at = (at + 1) & (ids->room - 1)) {
		size_t wanted = slot_of(ids, ids->slots[at].address, ids->slots[at].birth_ns);

		if (((at - wanted) & (ids->room - 1)) < ((at - hole) & (ids->room - 1)))
			continue;
		ids->slots[hole] = ids->slots[at];
		hole = at;
	}
	ids->slots[hole].id = 0;
	ids->n--;
	return id;
}

/* The calls and bytes that the events so far have of a record. */
struct record_sum {
	bool is_known; /* the event collector has its key */
	__u64 calls, size_bytes;
};

struct engine_events {
	struct event_collector *collector;
	struct preload_events *reader;
	struct block_ids *blocks; /* indexed by program */
	size_t n_blocks;
	struct record_sum *records; /* indexed by the record's number */
	size_t n_records;
	__u64 last_id;
	size_t n_programs; /* how many were there when the engine last learned of them */
	size_t n_read;	   /* events of the last reading */
	struct ap_process_record *exits; /* of programs that have reported their end */
	size_t n_exits, exits_room;
	__u64 looked_ns; /* when ended processes were last looked for */
};

/* Has the collectors know what @record counts. */
static int know_record(struct preload_engine *engine, __u32 record)
{
	struct engine_events *events = engine->events;
	struct ap_key_record key = { .type = AP_RECORD_KEY, .record = record };
	struct inside_record_key from;
	int err = 0;

	if (!record || (record < events->n_records && events->records[record].is_known) ||
	    !preload__read_record_key(engine->preload, record, &from))
		return 0;
	if (array__reserve_zeroed(&events->records, &events->n_records, record + 1UL,
				  sizeof(*events->records)))
		return -ENOMEM;
	if (from.frames)
		err = preload_engine__read_stack(engine, &from);
	if (err)
		return err;
	key.key.stack = from.stack;
	key.key.process = from.program;
	key.key.function = from.function;
	memcpy(key.key.thread, from.comm, sizeof(key.key.thread) - 1);
	event_collector__handle_record(events->collector, &key, sizeof(key));
	events->records[record].is_known = true;
	return 0;
}

static void send(struct engine_events *events, const struct ap_event_record *record)
{
	event_collector__handle_record(events->collector, record, sizeof(*record));
}

static bool is_call(enum ap_event_kind kind)
{
	return kind != AP_EVENT_FREE && kind != AP_EVENT_UNSEEN && kind != AP_EVENT_NOOP;
}

static void add_call(struct record_sum *sum, const struct inside_event *event)
{
	sum->calls += event->weight;
	if (event->size_bytes < AP_IMPOSSIBLE_BYTES)
		sum->size_bytes += event->weight * event->size_bytes;
}

static int handle_event(void *context, __u32 program, const struct inside_event *event)
{
	struct preload_engine *engine = context;
	struct engine_events *events = engine->events;
	struct ap_event_record record = {
		.type = AP_RECORD_EVENT,
		.kind = event->kind,
		.temporary = event->temporary & 1,
		.record = event->record,
		.process = program + 1,
		.thread = event->thread,
		.weight = event->weight ?: 1,
		.time_ns = event->time_ns < AP_MAX_SUM ? event->time_ns : AP_MAX_SUM,
		.address = event->address,
		.size_bytes = event->size_bytes,
	};
	struct block_ids *blocks;
	int err = know_record(engine, event->record);

	if (!err)
		err = know_record(engine, event->old_record);
	if (err || event->kind >= AP_EVENT_KINDS)
		return err;
	if (array__reserve_zeroed(&events->blocks, &events->n_blocks, program + 1UL,
				  sizeof(*events->blocks)))
		return -ENOMEM;
	blocks = &events->blocks[program];
	if (is_call(event->kind) && event->record < events->n_records)
		add_call(&events->records[event->record], event);
	switch (event->kind) {
	case AP_EVENT_MOVED: {
		struct ap_event_record old = record;

		old.record = event->old_record;
		old.address = event->old_address;
		old.size_bytes = event->old_size_bytes;
		old.weight = event->old_weight ?: 1;
		old.id = take(blocks, event->old_address, event->birth_ns) ?: ++events->last_id;
		send(events, &old);
		record.kind = AP_EVENT_ALLOC;
		record.temporary = 0;
		record.id = old.id;
		break;
	}
	case AP_EVENT_ALLOC:
		record.id = ++events->last_id;
		break;
	case AP_EVENT_FREE:
	case AP_EVENT_UNSEEN:
		/* The event of its allocation may be lost. */
		record.id = take(blocks, event->address, event->birth_ns) ?: ++events->last_id;
		break;
	}
	send(events, &record);
	return record.kind == AP_EVENT_ALLOC
		       ? put(blocks, event->address, event->time_ns, record.id)
		       : 0;
}

int preload_engine__open_events(struct preload_engine *engine, struct error *error)
{
	engine->events = calloc(1, sizeof(*engine->events));
	if (!engine->events)
		return -ENOMEM;
	engine->events->reader = preload_events__new(engine->preload, handle_event, engine);
	if (!engine->events->reader)
		return -ENOMEM;
	return event_collector__new(engine->options.events_path, engine->options.events_choice,
				    engine->collector, &engine->events->collector, error);
}

void preload_engine__close_events(struct preload_engine *engine)
{
	struct engine_events *events = engine->events;

	if (!events)
		return;
	event_collector__free(events->collector);
	preload_events__free(events->reader);
	for (size_t i = 0; i < events->n_blocks; i++)
		free(events->blocks[i].slots);
	free(events->blocks);
	free(events->records);
	free(events->exits);
	free(events);
	engine->events = NULL;
}

int preload_engine__finish_program(struct preload_engine *engine, __u32 program, bool runs)
{
	struct engine_events *events = engine->events;
	int err = preload_events__finish(events->reader, program, runs);

	if (program < events->n_blocks) {
		free(events->blocks[program].slots);
		events->blocks[program] = (struct block_ids){ 0 };
	}
	return err;
}

int preload_engine__log_process(struct preload_engine *engine,
				const struct ap_process_record *record)
{
	struct engine_events *events = engine->events;

	if (record->event == AP_PROCESS_EXITED) {
		/* A process that has reported its end runs the destructors of other libraries. */
		if (array__reserve(&events->exits, &events->exits_room, events->n_exits + 1,
				   sizeof(*events->exits)))
			return -ENOMEM;
		events->exits[events->n_exits++] = *record;
		return 0;
	}
	event_collector__handle_record(events->collector, record, sizeof(*record));
	return 0;
}

/* Logs the ends of processes that are not there any more or, @all, of those that have reported
 * their end. */
static int log_exits(struct preload_engine *engine, bool all)
{
	struct engine_events *events = engine->events;
	size_t left = 0;
	int err = 0;

	for (size_t i = 0; i < events->n_exits; i++) {
		const struct ap_process_record *exit = &events->exits[i];
		bool runs = preload_engine__runs(engine, exit->pid);

		if (err || (runs && !all)) {
			events->exits[left++] = *exit;
			continue;
		}
		err = preload_engine__finish_program(engine, exit->id - 1, runs);
		event_collector__handle_record(events->collector, exit, sizeof(*exit));
	}
	events->n_exits = left;
	return err;
}

/* How long one reading may last: tables and answers wait meanwhile. */
#define READING_NS (20 * NS_PER_MS)

/* Time between two readings while there are events. */
#define BUSY_MS 2

/* How often processes are looked at that have reported their end. */
#define EXITS_NS NS_PER_S

int preload_engine__attend_events(struct preload_engine *engine)
{
	struct engine_events *events = engine->events;
	struct preload_results counted;
	__u64 now_ns = clock__now_ns();
	size_t n_programs;
	int err = preload_events__look(events->reader, &n_programs);

	/* A process's begin comes before its events. */
	if (!err && n_programs > events->n_programs) {
		err = preload__read(engine->preload, &counted);
		if (err)
			return err;
		err = preload_engine__take_programs(engine, &counted);
		preload_results__free(&counted);
		events->n_programs = n_programs;
	}
	if (!err)
		err = preload_events__read(events->reader, READING_NS, &events->n_read);
	if (!err && now_ns - events->looked_ns >= EXITS_NS) {
		events->looked_ns = now_ns;
		err = log_exits(engine, false);
	}
	if (!err)
		event_collector__attend(events->collector);
	return err;
}

int preload_engine__events_timeout_ms(const struct preload_engine *engine, int most)
{
	return engine->events->n_read && most > BUSY_MS ? BUSY_MS : most;
}

int preload_engine__finish_events(struct preload_engine *engine)
{
	int err = log_exits(engine, true);

	for (size_t i = 0; i < engine->n_programs && !err; i++)
		if (engine->programs[i] == PROGRAM_RUNS)
			err = preload_engine__finish_program(engine, i, true);
	return err;
}

/* So many calls of a record are logged one by one; the last event stands for the rest. */
#define MOST_UNFINISHED 1000

int preload_engine__log_unfinished(struct preload_engine *engine, __u32 number,
				   const struct ap_blocks *blocks)
{
	struct engine_events *events = engine->events;
	struct record_sum sum = { 0 };
	int err = know_record(engine, number);
	__u64 left, n;

	if (err || preload_events__lost(events->reader))
		return err;
	if (number < events->n_records)
		sum = events->records[number];
	left = blocks->calls > sum.calls ? blocks->calls - sum.calls : 0;
	if (left > UINT32_MAX)
		left = UINT32_MAX;
	n = engine->options.sample_bytes ? 1 : MOST_UNFINISHED;
	while (left) {
		__u32 weight = --n ? 1 : left;
		__u64 size_bytes = blocks->asked_bytes > sum.size_bytes
					   ? (blocks->asked_bytes - sum.size_bytes) / left
					   : 0;

		event_collector__add_unfinished(events->collector, number, 0, size_bytes, weight);
		sum.size_bytes += weight * size_bytes;
		left -= weight;
	}
	return 0;
}

void preload_engine__end_log(struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;

	event_collector__finish(engine->events->collector,
				preload_events__lost(engine->events->reader) +
					counted->gaps[INSIDE_GAP_EVENTS]);
}

void preload_engine__log_results(const struct preload_engine *engine, struct event_log_results *out)
{
	event_collector__results(engine->events->collector, out);
}
