// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads stacks and their counts from the shared memory of the processes. */
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

struct stack_buffer {
	struct ap_stack_record record;
	struct ap_frame frames[AP_MAX_DEPTH];
};

struct python_buffer {
	struct ap_python_record record;
	char text[AP_PYTHON_NAME_BYTES + AP_PYTHON_FILE_BYTES];
};

/* Passes the stack on that the slot has, whose record is in @buffer. */
static int take_stack(struct reader *reader, const struct inside_stack *slot,
		      struct stack_buffer *buffer, preload_stack_fn fn, void *context)
{
	struct ap_stack_record *record = &buffer->record;

	if (record->type != AP_RECORD_STACK || record->n_frames > AP_MAX_DEPTH ||
	    record->end >= AP_STACK_ENDS || record->stack != slot->hash || !record->process ||
	    record->process > reader->n_programs) {
		reader->n_damaged++;
		return 0;
	}
	if (!reader__get(reader, slot->offset + sizeof(*record), buffer->frames,
			 record->n_frames * sizeof(buffer->frames[0])))
		return 0;
	for (__u32 i = 0; i < record->n_frames; i++) {
		buffer->frames[i].flags &=
			AP_FRAME_INTERRUPTED | AP_FRAME_WITHIN | AP_FRAME_PYTHON | AP_FRAME_ASYNC;
		if (buffer->frames[i].module >= UNWIND_MAX_MODULES) {
			reader->n_damaged++;
			return 0;
		}
	}
	return fn(context, record);
}

int preload__read_stack(const struct preload *preload, const struct inside_record_key *key,
			preload_stack_fn fn, void *context)
{
	const struct inside_stack slot = { .hash = key->stack, .offset = key->frames };
	struct reader reader = { 0 };
	struct stack_buffer buffer;
	struct ap_stack_record *record = &buffer.record;
	int err = reader__begin(&reader, preload);

	return err || !reader__get(&reader, slot.offset, record, sizeof(*record))
		       ? err
		       : take_stack(&reader, &slot, &buffer, fn, context);
}

struct reading {
	struct reader reader;
	struct stack_buffer stack;
	struct python_buffer python;
	preload_stack_fn take_stack;
	preload_python_fn take_python;
	void *context;
	bool has_python; /* a slot has a frame of Python */
};

/* Passes on what a slot has, if it is what is read. */
typedef int (*read_slot_fn)(struct reading *reading, const struct inside_stack *slot);

static int read_stack(struct reading *reading, const struct inside_stack *slot)
{
	struct ap_stack_record *record = &reading->stack.record;

	if (!reader__get(&reading->reader, slot->offset, record, sizeof(*record)))
		return 0;
	if (record->type == AP_RECORD_PYTHON) {
		reading->has_python = true;
		return 0;
	}
	return take_stack(&reading->reader, slot, &reading->stack, reading->take_stack,
			  reading->context);
}

static int read_python(struct reading *reading, const struct inside_stack *slot)
{
	struct ap_python_record *record = &reading->python.record;

	if (!reader__get(&reading->reader, slot->offset, record, sizeof(*record)) ||
	    record->type != AP_RECORD_PYTHON)
		return 0;
	if (record->id != slot->hash || record->id >> 63 || record->n_name > AP_PYTHON_NAME_BYTES ||
	    record->n_file > AP_PYTHON_FILE_BYTES) {
		reading->reader.n_damaged++;
		return 0;
	}
	if (!reader__get(&reading->reader, slot->offset + sizeof(*record), reading->python.text,
			 record->n_name + record->n_file))
		return 0;
	return reading->take_python(reading->context, record);
}

static int read_slots(struct reading *reading, const struct preload *preload, read_slot_fn read)
{
	const size_t slots_at_once = 1 << INSIDE_FIRST_STACKS;
	struct inside_stack *slots = malloc(slots_at_once * sizeof(*slots));
	struct reader *reader = &reading->reader;
	int err = slots ? reader__begin(reader, preload) : -ENOMEM;

	for (int table = 0; table < INSIDE_STACK_TABLES && !err; table++) {
		__u64 offset = reader->header.stacks[table];

		for (__u32 part = 0; offset && part < 1U << table && !err; part++) {
			__u64 begin = offset + part * slots_at_once * sizeof(*slots);

			if (reader__next_data(reader, begin,
					      begin + slots_at_once * sizeof(*slots)) >=
			    begin + slots_at_once * sizeof(*slots))
				continue;
			if (!reader__get(reader, offset + part * slots_at_once * sizeof(*slots),
					 slots, slots_at_once * sizeof(*slots)))
				break;
			for (size_t i = 0; i < slots_at_once && !err; i++)
				err = slots[i].hash ? read(reading, &slots[i]) : 0;
		}
	}
	free(slots);
	return err;
}

int preload__read_stacks(const struct preload *preload, preload_stack_fn fn, void *context,
			 bool *has_python)
{
	struct reading reading = { .take_stack = fn, .context = context };
	int err = read_slots(&reading, preload, read_stack);

	if (!err)
		*has_python = reading.has_python;
	return err;
}

int preload__read_python(const struct preload *preload, preload_python_fn fn, void *context)
{
	struct reading reading = { .take_python = fn, .context = context };

	return read_slots(&reading, preload, read_python);
}

struct read_count {
	struct ap_count_key key;
	struct ap_count count;
};

struct counting {
	preload_count_fn fn;
	void *context;
	/* The counters of one thread, as read. */
	struct read_count *list;
	size_t n, room;
};

static int read_count(struct reader *reader, const struct inside_thread *thread, const void *entry)
{
	const struct inside_count *from = entry;
	struct counting *counting = reader->context;
	struct ap_count_key key = {
		.stack = from->stack,
		.process = thread->program,
		.function = from->function,
	};
	struct ap_count count = { .calls = from->calls, .size_bytes = from->size_bytes };

	if (reader->sampling->sample)
		count.estimate = ((const struct inside_sampled_count *)from)->estimate;

	/* The thread published this table a moment ago, and has not filled the entry yet. */
	if (!from->stack || !from->calls)
		return 0;
	if (!reader__has_function(reader, from->function) || from->calls > AP_MAX_SUM) {
		reader->n_damaged++;
		return 0;
	}
	if (count.size_bytes > AP_MAX_SUM)
		count.size_bytes = AP_MAX_SUM;
	memcpy(key.thread, thread->comm, sizeof(key.thread));
	key.thread[sizeof(key.thread) - 1] = 0;
	if (array__reserve(&counting->list, &counting->room, counting->n + 1,
			   sizeof(*counting->list)))
		return -ENOMEM;
	counting->list[counting->n++] = (struct read_count){ key, count };
	return 0;
}

bool reader__get_thread(struct reader *reader, __u64 offset, struct inside_thread *thread)
{
	if (!offset || !reader__get(reader, offset, thread, sizeof(*thread)))
		return false;
	if (thread->state == INSIDE_READY && thread->program &&
	    thread->program <= reader->n_programs)
		return true;
	reader->n_damaged++;
	return false;
}

#define AT_ONCE_BYTES (64 << 10)

int reader__each_entry(struct reader *reader, const struct inside_thread *thread, __u64 published,
		       size_t size,
		       int (*take)(struct reader *reader, const struct inside_thread *thread,
				   const void *entry))
{
	__u64 offset = published & ~(__u64)INSIDE_SHIFT, n = 1ULL << (published & INSIDE_SHIFT);
	const __u64 at_once = AT_ONCE_BYTES / size;
	char *entries;
	int err = 0;

	if (!published)
		return 0;
	if ((published & INSIDE_SHIFT) > INSIDE_MAX_SHIFT) {
		reader->n_damaged++;
		return 0;
	}
	entries = malloc(AT_ONCE_BYTES);
	if (!entries)
		return -ENOMEM;
	for (__u64 done = 0; done < n && !err; done += at_once) {
		__u64 part;

		/* Slots that were never written are free, so holes of the file are skipped. */
		done = (reader__next_data(reader, offset + done * size, offset + n * size) -
			offset) /
		       size;
		if (done >= n)
			break;
		part = n - done < at_once ? n - done : at_once;
		if (!reader__get(reader, offset + done * size, entries, part * size))
			break;
		for (__u64 i = 0; i < part && !err; i++)
			err = take(reader, thread, entries + i * size);
	}
	free(entries);
	return err;
}

/* How often a thread's table is read again because it has grown. If it grows more often, the
 * process writes nonsense. */
#define READINGS 16

static int take_counts(struct reader *reader, __u32 index, const void *element)
{
	const size_t size = reader->sampling->sample ? sizeof(struct inside_sampled_count)
						     : sizeof(struct inside_count);
	struct counting *counting = reader->context;
	struct inside_thread thread;
	__u64 published;
	int err;

	if (!reader__get_thread(reader, *(const __u64 *)element, &thread))
		return 0;
	/* When a table grows, the old one is emptied, and the new one may be beyond the part of
	 * the file that is known. */
	for (int i = 0; i < READINGS; i++) {
		published = thread.counts;
		counting->n = 0;
		if ((published & ~(__u64)INSIDE_SHIFT) >= reader->end && reader__look_again(reader))
			return -EIO;
		err = reader__each_entry(reader, &thread, published, size, read_count);
		if (err)
			return err;
		if (!reader__get_thread(reader, *(const __u64 *)element, &thread) ||
		    thread.counts == published)
			break;
	}
	for (size_t i = 0; i < counting->n && !err; i++)
		err = counting->fn(counting->context, index, &counting->list[i].key,
				   &counting->list[i].count);
	return err;
}

int preload__read_counts(const struct preload *preload, preload_count_fn fn, void *context)
{
	struct counting counting = { .fn = fn, .context = context };
	struct reader reader = { .context = &counting };
	int err = reader__begin(&reader, preload);

	if (!err)
		err = reader__each(&reader, &reader.header.threads, 0, sizeof(__u64), take_counts);
	free(counting.list);
	return err;
}
