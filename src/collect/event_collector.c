// SPDX-License-Identifier: GPL-3.0-or-later
#include "event_collector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "collector_internal.h"
#include "error.h"
#include "event_abi.h"
#include "event_log.h"
#include "profile.h"
#include "definition_names.h"

/* How often the log is written: a recorder that is killed loses the events of this time. */
#define FLUSH_EVERY_NS NS_PER_S

/* A record of the programs: its key, and the number of its site in the log. */
struct keyed {
	struct ap_count_key key;
	__u32 site; /* 0: not in the log yet */
};

/* A site whose stack dump was not unwound when the log got it. */
struct stackless {
	struct ap_count_key key;
	__u32 site;
};

struct event_collector {
	struct collector *collector;
	const struct event_log_choice *choice; /* NULL: all blocks are logged */
	__u32 *site_threads;		       /* ids of threads by site - 1 */
	size_t site_threads_room;
	__u64 n_left_out;
	struct event_log_writer *log;
	struct keyed *records; /* by index */
	size_t records_room;
	struct stackless *stackless;
	size_t n_stackless, stackless_room;
	/* The AP_EVENT_MOVED of each thread from which the AP_EVENT_ALLOC that follows has not
	 * come yet. */
	struct event_log_event *moved;
	size_t n_moved, moved_room;
	/* How many definitions of each kind the log has. */
	__u32 n_modules, n_frames, n_stacks, n_processes, n_sites;
	/* Number of events that could not be handled here, and of those that the programs lost. */
	__u64 n_lost;
	__u64 flushed_ns;
};

int event_collector__new(const char *path, const struct event_log_choice *choice,
			 struct collector *collector, struct event_collector **out,
			 struct error *error)
{
	struct event_collector *events = calloc(1, sizeof(*events));
	int err;

	if (!events)
		return error__set(error, -ENOMEM, "out of memory");
	events->collector = collector;
	events->choice = choice;
	events->flushed_ns = clock__now_ns();
	err = event_log_writer__new(path, &events->log, error);
	if (err) {
		event_collector__free(events);
		return err;
	}
	*out = events;
	return 0;
}

void event_collector__free(struct event_collector *events)
{
	if (!events)
		return;
	event_log_writer__free(events->log);
	free(events->records);
	free(events->stackless);
	free(events->moved);
	free(events->site_threads);
	free(events);
}

/* Writes definitions of the profile's new processes. @record is the record that began the last of
 * them, or NULL. */
static void define_processes(struct event_collector *events, const struct ap_process_record *record)
{
	const struct profile *profile = events->collector->profile;

	while (events->n_processes < profile->n_processes) {
		const struct profile_process *process = &profile->processes[events->n_processes++];
		struct event_log_process item = {
			.parent = process->parent,
			.pid = process->pid,
			.time_ns = process->start_ns,
			.comm = process->comm,
		};

		if (record && collector__process_of(events->collector, record->id) == process->id) {
			item.start = record->event == AP_PROCESS_EXECED	  ? EVENT_LOG_EXECED
				     : record->event == AP_PROCESS_FORKED ? EVENT_LOG_FORKED
									  : EVENT_LOG_SEEN;
			item.space = record->space;
			item.ended_space = record->ended_space;
		}
		event_log_writer__process(events->log, &item);
	}
}

_Static_assert(EVENT_LOG_MAX_PLACE + 1 == PROFILE_PLACES, "the log takes every place");

static void define_stacks(struct event_collector *events)
{
	const struct profile *profile = events->collector->profile;

	for (; events->n_modules < profile->n_modules; events->n_modules++) {
		const struct profile_module *module = &profile->modules[events->n_modules];

		event_log_writer__module(events->log, module->path, module->build_id);
	}
	for (; events->n_frames < profile->n_frames; events->n_frames++) {
		const struct profile_frame *frame = &profile->frames[events->n_frames];

		event_log_writer__frame(events->log, frame->module, frame->offset, frame->place);
	}
	for (; events->n_stacks < profile->n_stacks; events->n_stacks++) {
		const struct profile_stack *stack = &profile->stacks[events->n_stacks];

		event_log_writer__stack(events->log, profile__stack_end_name(stack->end),
					stack->frames, stack->n_frames);
	}
}

/* Writes the definition of the record's site. Fails with -ENOMEM; then the site is not in the log. */
static int define_site(struct event_collector *events, struct keyed *record)
{
	struct collector *collector = events->collector;
	const struct profile *profile = collector->profile;
	const struct ap_count_key *key = &record->key;
	struct event_log_site site;
	__u32 thread;
	int err = collector__key_thread(collector, key, &thread);

	if (err)
		return err;
	site = (struct event_log_site){
		.process = profile->threads[thread - 1].process,
		.stack = collector__key_stack(collector, key),
		.thread = profile->threads[thread - 1].name,
		.function = definition_names__function(&profile->definitions,
						       key->function & ~AP_FUNCTION_DUMPED),
	};
	if (!site.stack && array__reserve(&events->stackless, &events->stackless_room,
					  events->n_stackless + 1, sizeof(*events->stackless)))
		return -ENOMEM;
	if (array__reserve(&events->site_threads, &events->site_threads_room, events->n_sites + 1,
			   sizeof(*events->site_threads)))
		return -ENOMEM;
	define_processes(events, NULL);
	define_stacks(events);
	err = event_log_writer__site(events->log, &site);
	if (err)
		return err;
	events->site_threads[events->n_sites] = thread;
	record->site = ++events->n_sites;
	if (!site.stack)
		events->stackless[events->n_stackless++] = (struct stackless){ *key, record->site };
	return 0;
}

/* Returns the site of the record at @index; 0 if there is none. */
static __u32 site_of(struct event_collector *events, __u32 index)
{
	struct keyed *record;

	if (index >= events->records_room)
		return 0;
	record = &events->records[index];
	if (!record->site && record->key.process)
		define_site(events, record);
	return record->site;
}

/* Returns whether the log is to have a block of the call @site, which is not 0. */
static bool is_chosen(const struct event_collector *events, __u32 site, __u64 size_bytes)
{
	const struct event_log_choice *choice = events->choice;
	const struct profile *profile = events->collector->profile;

	return choice->has(choice->context,
			   profile->threads[events->site_threads[site - 1] - 1].name, size_bytes);
}

/* Makes of a realloc what it is to a log that has only one of both blocks. Returns false if it has neither. */
static bool choose_realloc(const struct event_collector *events, struct event_log_event *event)
{
	bool has_old = is_chosen(events, event->old_site, event->old_size_bytes);
	bool has_new = is_chosen(events, event->site, event->size_bytes);

	if (has_old && !has_new) {
		event->kind = AP_EVENT_FREE;
		event->site = event->old_site;
		event->weight = event->old_weight;
		event->address = event->old_address;
		event->size_bytes = event->old_size_bytes;
	} else if (has_new && !has_old) {
		event->kind = AP_EVENT_ALLOC;
		event->temporary = false;
	}
	return has_old || has_new;
}

/* Returns whether an event goes to the log, which it does not if its block is not chosen, or if it is not known whether that
 * is. */
static bool choose_event(struct event_collector *events, struct event_log_event *event)
{
	bool is_realloc = event->kind == EVENT_LOG_REALLOC, has;

	/* Only what is of no followed block has no call by itself. */
	if (event->kind != AP_EVENT_NOOP && (!event->site || (is_realloc && !event->old_site))) {
		events->n_lost++;
		return false;
	}
	if (event->kind == AP_EVENT_NOOP)
		has = false;
	else if (is_realloc)
		has = choose_realloc(events, event);
	else
		has = is_chosen(events, event->site, event->size_bytes);
	events->n_left_out += !has;
	return has;
}

static void write_event(struct event_collector *events, struct event_log_event event)
{
	/* The writer counts the events that it cannot write. */
	if (!events->choice || choose_event(events, &event))
		event_log_writer__event(events->log, &event);
}

/* Removes and returns the block that @thread's realloc has moved. Returns false if there is none. */
static bool take_moved(struct event_collector *events, __u32 thread, struct event_log_event *moved)
{
	for (size_t i = 0; i < events->n_moved; i++) {
		if (events->moved[i].thread != thread)
			continue;
		*moved = events->moved[i];
		events->moved[i] = events->moved[--events->n_moved];
		return true;
	}
	return false;
}

static void keep_moved(struct event_collector *events, const struct event_log_event *event)
{
	if (array__reserve(&events->moved, &events->moved_room, events->n_moved + 1,
			   sizeof(*events->moved))) {
		events->n_lost++;
		return;
	}
	events->moved[events->n_moved++] = *event;
}

static void add_event(struct event_collector *events, const struct ap_event_record *record)
{
	struct event_log_event moved, event = {
		.kind = record->kind,
		.temporary = record->temporary,
		.thread = record->thread,
		.weight = record->weight,
		.site = site_of(events, record->record),
		.time_ns = record->time_ns,
		.id = record->id,
		.address = record->address,
		.size_bytes = record->size_bytes,
	};

	if (record->process)
		event.process = collector__process_of(events->collector, record->process);
	else if (event.site)
		event.process = collector__process_of(events->collector,
						      events->records[record->record].key.process);
	if (take_moved(events, event.thread, &moved)) {
		if (event.kind == AP_EVENT_ALLOC && event.id == moved.id) {
			event.kind = EVENT_LOG_REALLOC;
			event.temporary = moved.temporary;
			event.old_site = moved.site;
			event.old_weight = moved.weight;
			event.old_address = moved.address;
			event.old_size_bytes = moved.size_bytes;
		} else {
			/* The event of the new block is lost, so the old one is written as freed. */
			moved.kind = AP_EVENT_FREE;
			write_event(events, moved);
		}
	}
	if (event.kind == AP_EVENT_MOVED && !event.old_address)
		keep_moved(events, &event);
	else
		write_event(events, event);
}

static void set_key(struct event_collector *events, const struct ap_key_record *record)
{
	/* If there is no memory for the index, its events have no site. */
	if (array__reserve_zeroed(&events->records, &events->records_room,
				  (size_t)record->record + 1, sizeof(*events->records))) {
		events->n_lost++;
		return;
	}
	events->records[record->record] = (struct keyed){ .key = record->key };
}

static void handle_process(struct event_collector *events, const struct ap_process_record *record)
{
	struct event_log_exit exit = {
		.process = collector__process_of(events->collector, record->id),
		.ended_space = record->ended_space,
		.time_ns = record->time_ns,
	};

	define_processes(events, record);
	if (record->event == AP_PROCESS_EXITED && exit.process)
		event_log_writer__exit(events->log, &exit);
}

void event_collector__handle_record(struct event_collector *events, const void *record, size_t size)
{
	if (size < sizeof(__u32))
		return;
	switch (*(const __u32 *)record) {
	case AP_RECORD_EVENT:
		if (size >= sizeof(struct ap_event_record))
			add_event(events, record);
		break;
	case AP_RECORD_KEY:
		if (size >= sizeof(struct ap_key_record))
			set_key(events, record);
		break;
	case AP_RECORD_PROCESS:
		if (size >= sizeof(struct ap_process_record))
			handle_process(events, record);
		break;
	}
}

static void settle_stacks(struct event_collector *events)
{
	size_t left = 0;

	for (size_t i = 0; i < events->n_stackless; i++) {
		const struct stackless *stackless = &events->stackless[i];
		__u32 stack = collector__key_stack(events->collector, &stackless->key);

		if (!stack) {
			events->stackless[left++] = *stackless;
			continue;
		}
		define_stacks(events);
		event_log_writer__set_stack(events->log, stackless->site, stack);
	}
	events->n_stackless = left;
}

void event_collector__attend(struct event_collector *events)
{
	__u64 now_ns = clock__now_ns();

	settle_stacks(events);
	if (now_ns < events->flushed_ns + FLUSH_EVERY_NS)
		return;
	events->flushed_ns = now_ns;
	event_log_writer__flush(events->log);
}

void event_collector__add_unfinished(struct event_collector *events, __u32 record, __u32 thread,
				     __u64 size_bytes, __u32 weight)
{
	struct ap_event_record event = {
		.kind = AP_EVENT_UNFINISHED,
		.record = record,
		.thread = thread,
		.weight = weight,
		.time_ns = clock__now_ns(),
		.size_bytes = size_bytes,
	};

	add_event(events, &event);
}

void event_collector__finish(struct event_collector *events, __u64 n_lost)
{
	__u64 n_failed;

	settle_stacks(events);
	for (size_t i = 0; i < events->n_moved; i++) {
		events->moved[i].kind = AP_EVENT_FREE;
		write_event(events, events->moved[i]);
	}
	events->n_moved = 0;
	events->n_lost += n_lost;
	event_log_writer__flush(events->log);
	event_log_writer__written(events->log, &n_failed);
	event_log_writer__end(events->log, events->n_lost + n_failed);
}

void event_collector__results(const struct event_collector *events, struct event_log_results *out)
{
	__u64 n_failed;

	out->is_logged = true;
	out->logged = event_log_writer__written(events->log, &n_failed);
	out->lost = events->n_lost + n_failed;
	out->left_out = events->n_left_out;
	out->choice = events->choice ? events->choice->text : NULL;
	out->err = event_log_writer__error(events->log);
	out->id = event_log_id__text(event_log_writer__id(events->log));
}

int event_log_results__add(const struct event_log_results *log, struct profile *profile)
{
	int err;

	if (!log->is_logged)
		return 0;
	profile->totals.events_err = log->err;
	err = profile__set_meta(profile, "events_id", log->id.text);
	if (!err)
		err = profile__set_ledger(profile, "logged", log->logged);
	if (!err)
		err = profile__set_ledger(profile, "not_logged", log->lost);
	if (!err && log->choice)
		err = profile__set_meta(profile, "events_where", log->choice);
	return err || !log->choice ? err : profile__set_ledger(profile, "left_out", log->left_out);
}
