// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Puts the events of each program in order. Threads write them into chunks of their own, with
 * numbers of their program: so the next event is the one with the next number, in whatever chunk.
 */
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "file.h"

/* How many events of a program are put in order at a time. */
#define WINDOW (1 << 14)

/* How many chunks are read at once. */
#define CHUNKS_AT_ONCE 16

/* A number whose event does not get complete for so long is given up: its thread has ended, or its
 * call was left by a jump. */
#define MISSED_NS (5 * NS_PER_S)

/* How long a program that runs has to complete its last events, and how often it is looked at. */
#define LAST_NS (100 * NS_PER_MS)
#define LOOK_NS NS_PER_MS

struct chunk {
	__u64 next; /* number of its next event, as far as is known; else 0 */
	__u64 last; /* is_full: the highest number in it */
	bool is_full;
	__u8 n_idle; /* how many readings have found nothing new in it, up to MOST_IDLE */
};

/* A chunk in which so many readings have found nothing new is read only when an event is missing:
 * thousands of threads may have one, and do nothing. */
#define MOST_IDLE 2

struct program {
	__u64 offset; /* of its struct inside_events; 0: not known */
	/* Offsets of its parts: each as it was when it was first read, since the process could change
	 * them later; 0: it has not been read. */
	__u64 parts[INSIDE_EVENT_PARTS];
	bool is_known, has_ended;
	__u64 next;	      /* number of the next event */
	__u64 missed_ns;      /* since when it has been missing, CLOCK_MONOTONIC; 0: it has not */
	__u64 n_lost, n_here; /* lost for want of room; numbers that were given up */
	struct chunk *chunks;
	size_t n_chunks, chunks_room;
	__u32 n_freed;
};

struct slot {
	struct inside_event event;
	__u64 reading; /* the number of the reading that has stored it */
};

struct preload_events {
	const struct preload *preload;
	preload_event_fn fn;
	void *context;
	struct program *programs;
	size_t n_programs, programs_room, n_known;
	struct slot *window;
	__u64 n_readings;
	struct inside_event_chunk *first_look, *chunks; /* CHUNKS_AT_ONCE each */
	__u32 *states;
};

/* A reading of one program, which is under way. */
struct reading {
	struct preload_events *events;
	struct program *program;
	struct reader reader;
	struct inside_events shared;
	__u64 least; /* the lowest number that was seen behind the next one; 0: none */
	bool all;    /* also chunks that have been idle */
};

struct preload_events *preload_events__new(const struct preload *preload, preload_event_fn fn,
					   void *context)
{
	struct preload_events *events = calloc(1, sizeof(*events));

	if (!events)
		return NULL;
	*events = (struct preload_events){ .preload = preload, .fn = fn, .context = context };
	events->window = calloc(WINDOW, sizeof(*events->window));
	events->first_look = calloc(CHUNKS_AT_ONCE, sizeof(*events->first_look));
	events->chunks = calloc(CHUNKS_AT_ONCE, sizeof(*events->chunks));
	events->states = calloc(INSIDE_EVENT_CHUNKS, sizeof(*events->states));
	if (events->window && events->first_look && events->chunks && events->states)
		return events;
	preload_events__free(events);
	return NULL;
}

void preload_events__free(struct preload_events *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < events->n_programs; i++)
		free(events->programs[i].chunks);
	free(events->programs);
	free(events->window);
	free(events->first_look);
	free(events->chunks);
	free(events->states);
	free(events);
}

static int look_at_program(struct reader *reader, __u32 index, const void *element)
{
	const struct inside_program *from = element;
	struct preload_events *events = reader->context;
	struct program *program;

	if (array__reserve_zeroed(&events->programs, &events->programs_room, index + 1UL,
				  sizeof(*events->programs)))
		return -ENOMEM;
	if (events->n_programs < index + 1UL)
		events->n_programs = index + 1UL;
	program = &events->programs[index];
	if (from->state != INSIDE_READY)
		return 0;
	events->n_known += !program->is_known;
	program->is_known = true;
	if (!program->offset) {
		program->offset = from->events;
		program->next = 1;
	}
	return 0;
}

int preload_events__look(struct preload_events *events, size_t *n_programs)
{
	struct reader reader = { .context = events };
	size_t first = 0;
	int err = reader__begin(&reader, events->preload);

	while (first < events->n_programs &&
	       (events->programs[first].offset || events->programs[first].has_ended))
		first++;
	if (!err)
		err = reader__each(&reader, &reader.header.programs, first,
				   sizeof(struct inside_program), look_at_program);
	if (!err)
		*n_programs = events->n_known;
	return err;
}

static void note_number(struct reading *reading, __u64 number)
{
	if (!reading->least || number < reading->least)
		reading->least = number;
}

static bool is_wanted(struct reading *reading, const struct chunk *chunk, __u32 state)
{
	if (state != INSIDE_CHUNK_USED && state != INSIDE_CHUNK_FULL)
		return false;
	if (chunk->next < reading->program->next + WINDOW)
		return state == INSIDE_CHUNK_FULL || chunk->n_idle < MOST_IDLE || reading->all;
	note_number(reading, chunk->next);
	return false;
}

/* Moves the chunk's events that are next, or nearly so, to the window: those that were complete at
 * the first look. */
static void take_chunk(struct reading *reading, struct chunk *chunk,
		       const struct inside_event_chunk *first_look,
		       const struct inside_event_chunk *from, bool is_full)
{
	__u64 next = reading->program->next;

	chunk->next = chunk->last = 0;
	chunk->is_full = is_full;
	for (int i = 0; i < INSIDE_CHUNK_EVENTS; i++) {
		const struct inside_event *event = &from->events[i];
		struct slot *slot = &reading->events->window[event->number % WINDOW];

		/* Events with lower numbers were handled, or given up. */
		if (event->number < from->first || event->number < next ||
		    event->number > AP_MAX_SUM || first_look->events[i].number != event->number)
			continue;
		if (event->number > chunk->last)
			chunk->last = event->number;
		if (!chunk->next)
			chunk->next = event->number;
		note_number(reading, event->number);
		if (event->number - next < WINDOW)
			*slot = (struct slot){ *event, reading->events->n_readings };
	}
	if (chunk->next)
		chunk->n_idle = 0;
	else if (chunk->n_idle < MOST_IDLE)
		chunk->n_idle++;
}

/* Reads @n chunks from @offset on, which are all in the same state. */
static int read_run(struct reading *reading, __u64 offset, struct chunk *chunks, __u32 n,
		    bool is_full)
{
	struct preload_events *events = reading->events;
	const struct inside_event_chunk *first_look = is_full ? events->chunks : events->first_look;
	const size_t size = n * sizeof(*events->chunks);

	/* The kernel may copy an event's number, which is stored last, before the rest of the
	 * event. So events of a thread that may be writing are looked for first, and read then. */
	if ((!is_full && !reader__get(&reading->reader, offset, events->first_look, size)) ||
	    !reader__get(&reading->reader, offset, events->chunks, size))
		return -EIO;
	for (__u32 i = 0; i < n; i++)
		take_chunk(reading, &chunks[i], &first_look[i], &events->chunks[i], is_full);
	return 0;
}

static int read_part(struct reading *reading, __u32 part, __u32 first)
{
	__u32 n = inside_event_part__chunks(part), *states = &reading->events->states[first], until;
	struct chunk *chunks = &reading->program->chunks[first];
	__u64 *known = &reading->program->parts[part];
	__u64 offset = *known ? *known : reading->shared.parts[part];
	int err = 0;

	if (!reader__get(&reading->reader, offset, states, n * sizeof(*states)))
		return -EIO;
	*known = offset;
	offset += inside_event_part__chunks_at(part);
	for (__u32 i = 0; i < n && !err; i = until) {
		until = i;
		while (until < n && until - i < CHUNKS_AT_ONCE && states[until] == states[i] &&
		       is_wanted(reading, &chunks[until], states[until]))
			until++;
		if (until > i)
			err = read_run(reading, offset + i * sizeof(struct inside_event_chunk),
				       &chunks[i], until - i, states[i] == INSIDE_CHUNK_FULL);
		else
			until++;
	}
	return err;
}

/* Sets chunks free whose events were all handled. */
static int free_chunks(struct reading *reading)
{
	const int fd = reading->events->preload->memory_fd;
	struct program *program = reading->program;
	__u32 first = 0, before = program->n_freed;
	const __u32 none = INSIDE_CHUNK_FREE;
	int err = 0;

	for (__u32 part = 0; part < INSIDE_EVENT_PARTS && first < program->n_chunks; part++) {
		for (__u32 i = 0; i < inside_event_part__chunks(part) && !err; i++) {
			struct chunk *chunk = &program->chunks[first + i];

			if (!chunk->is_full || chunk->last >= program->next)
				continue;
			*chunk = (struct chunk){ 0 };
			err = fd__write_all_at(fd, &none, sizeof(none),
					       program->parts[part] + i * sizeof(none));
			program->n_freed++;
		}
		first += inside_event_part__chunks(part);
	}
	if (err || program->n_freed == before)
		return err;
	err = fd__write_all_at(fd, &program->n_freed, sizeof(program->n_freed),
			       program->offset + offsetof(struct inside_events, n_freed));
	return err ? err
		   : preload__wake_at(fd,
				      program->offset + offsetof(struct inside_events, n_freed));
}

/* Passes the events on that are next. */
static int pass_on(struct reading *reading, size_t *n)
{
	struct preload_events *events = reading->events;
	struct program *program = reading->program;
	int err = 0;

	while (!err) {
		const struct slot *slot = &events->window[program->next % WINDOW];

		if (slot->reading != events->n_readings || slot->event.number != program->next)
			break;
		err = events->fn(events->context, program - events->programs, &slot->event);
		program->next++;
		(*n)++;
	}
	return err;
}

static void give_up(struct program *program, __u64 next)
{
	program->n_here = reader__add(program->n_here, next - program->next);
	program->next = next;
	program->missed_ns = 0;
}

static int read_chunks(struct reading *reading, size_t *n)
{
	struct program *program = reading->program;
	__u32 first = 0;
	int err;

	reading->events->n_readings++;
	reading->least = 0;
	for (__u32 part = 0; part < INSIDE_EVENT_PARTS && reading->shared.parts[part]; part++) {
		__u32 end = first + inside_event_part__chunks(part);

		if (array__reserve_zeroed(&program->chunks, &program->chunks_room, end,
					  sizeof(*program->chunks)))
			return -ENOMEM;
		program->n_chunks = end;
		if (read_part(reading, part, first))
			break;
		first = end;
	}
	err = pass_on(reading, n);
	return err ? err : free_chunks(reading);
}

/* Reads the program once. @gives_up: an event that is not complete never will be. *@last is the highest
 * number that is of interest, and is lowered to the highest one that was taken; 0: none was. */
static int read_once(struct preload_events *events, struct program *program, bool gives_up,
		     size_t *n, __u64 *last)
{
	struct reading reading = { .events = events, .program = program };
	size_t before = *n;
	int err = reader__begin(&reading.reader, events->preload);

	if (err || !program->offset ||
	    !reader__get(&reading.reader, program->offset, &reading.shared,
			 sizeof(reading.shared))) {
		*last = 0;
		return err;
	}
	program->n_lost = reader__add(0, reading.shared.n_lost);
	if (reading.shared.n < *last)
		*last = reading.shared.n;
	if (program->next > *last)
		return 0;
	err = read_chunks(&reading, n);
	reading.all = true;
	if (!err && *n == before)
		err = read_chunks(&reading, n);
	if (err || *n > before) {
		program->missed_ns = 0;
		return err;
	}
	if (!program->missed_ns)
		program->missed_ns = clock__now_ns();
	if (gives_up || clock__now_ns() - program->missed_ns > MISSED_NS) {
		if (reading.least > program->next)
			give_up(program, reading.least);
		else if (gives_up)
			give_up(program, *last + 1);
	}
	return 0;
}

int preload_events__read(struct preload_events *events, __u64 most_ns, size_t *n)
{
	__u64 until_ns = clock__now_ns() + most_ns;
	size_t before;
	int err = 0;

	*n = 0;
	do {
		before = *n;
		for (size_t i = 0; i < events->n_programs && !err; i++) {
			__u64 last = AP_MAX_SUM;

			if (!events->programs[i].has_ended)
				err = read_once(events, &events->programs[i], false, n, &last);
		}
	} while (!err && *n > before && clock__now_ns() < until_ns);
	return err;
}

int preload_events__finish(struct preload_events *events, __u32 program, bool runs)
{
	__u64 until_ns = clock__now_ns() + (runs ? LAST_NS : 0);
	/* A process that goes on adds events for ever: only those that it has now are waited for. */
	__u64 last = AP_MAX_SUM;
	size_t n = 0, before, n_programs;
	/* The program may have had its first event since. */
	int err = preload_events__look(events, &n_programs);

	if (err || program >= events->n_programs || events->programs[program].has_ended)
		return err;
	while (!err && last && events->programs[program].next <= last) {
		bool gives_up = clock__now_ns() >= until_ns;

		before = n;
		err = read_once(events, &events->programs[program], gives_up, &n, &last);
		if (!gives_up && n == before)
			usleep(LOOK_NS / 1000);
	}
	events->programs[program].has_ended = true;
	free(events->programs[program].chunks);
	events->programs[program].chunks = NULL;
	events->programs[program].n_chunks = events->programs[program].chunks_room = 0;
	return err;
}

__u64 preload_events__lost(const struct preload_events *events)
{
	__u64 sum = 0;

	for (size_t i = 0; i < events->n_programs; i++) {
		sum = reader__add(sum, events->programs[i].n_lost);
		sum = reader__add(sum, events->programs[i].n_here);
	}
	return sum;
}

bool preload__read_record_key(const struct preload *preload, __u32 record,
			      struct inside_record_key *out)
{
	struct reader reader = { 0 };
	__u64 offset;

	if (!record || reader__begin(&reader, preload))
		return false;
	offset = inside_array__offset(&reader.header.record_keys, record - 1, sizeof(*out));
	return offset && reader__get(&reader, offset, out, sizeof(*out)) &&
	       out->state == INSIDE_READY && out->program && out->program <= reader.n_programs &&
	       reader__has_function(&reader, out->function);
}
