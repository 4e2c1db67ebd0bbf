// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stack_buffer {
	struct ap_stack_record record;
	struct ap_frame frames[AP_MAX_DEPTH];
};

/* Passes the stack on if it is one. */
static int read_stack(struct reader *reader, const struct inside_stack *slot,
		      struct stack_buffer *buffer, preload_stack_fn fn, void *context)
{
	struct ap_stack_record *record = &buffer->record;

	if (!reader__get(reader, slot->place, record, sizeof(*record)))
		return 0;
	if (record->type != AP_RECORD_STACK || record->n_frames > AP_MAX_DEPTH ||
	    record->end >= AP_STACK_ENDS || record->stack != slot->hash || !record->process ||
	    record->process > reader->header.images.n) {
		reader->n_damaged++;
		return 0;
	}
	if (!reader__get(reader, slot->place + sizeof(*record), buffer->frames,
			 record->n_frames * sizeof(buffer->frames[0])))
		return 0;
	for (__u32 i = 0; i < record->n_frames; i++) {
		buffer->frames[i].flags &= AP_FRAME_INTERRUPTED | AP_FRAME_WITHIN;
		if (buffer->frames[i].module >= UNWIND_MAX_MODULES) {
			reader->n_damaged++;
			return 0;
		}
	}
	return fn(context, record);
}

int preload__read_stacks(const struct preload *preload, preload_stack_fn fn, void *context)
{
	const size_t slots_at_once = 1 << INSIDE_FIRST_STACKS;
	struct stack_buffer *buffer = malloc(sizeof(*buffer));
	struct inside_stack *slots = malloc(slots_at_once * sizeof(*slots));
	struct reader reader = { 0 };
	int err = buffer && slots ? reader__begin(&reader, preload) : -ENOMEM;

	for (int table = 0; table < INSIDE_STACK_TABLES && !err; table++) {
		__u64 place = reader.header.stacks[table];

		for (__u32 part = 0; place && part < 1U << table && !err; part++) {
			if (!reader__get(&reader, place + part * slots_at_once * sizeof(*slots),
					 slots, slots_at_once * sizeof(*slots)))
				break;
			for (size_t i = 0; i < slots_at_once && !err; i++)
				if (slots[i].hash)
					err = read_stack(&reader, &slots[i], buffer, fn, context);
		}
	}
	free(slots);
	free(buffer);
	return err;
}

struct counting {
	preload_count_fn fn;
	void *context;
};

static int read_count(struct reader *reader, const struct inside_thread *thread,
		      const struct inside_count *from)
{
	const struct counting *counting = reader->context;
	struct ap_count_key key = {
		.stack = from->stack,
		.process = thread->image,
		.function = from->function,
	};
	struct ap_count count = { .calls = from->calls, .size_bytes = from->size_bytes };

	/* It was published a moment ago. */
	if (!from->stack || !from->calls)
		return 0;
	if (from->function >= AP_DEFINED || from->calls > AP_MAX_SUM) {
		reader->n_damaged++;
		return 0;
	}
	if (count.size_bytes > AP_MAX_SUM)
		count.size_bytes = AP_MAX_SUM;
	memcpy(key.thread, thread->comm, sizeof(key.thread));
	key.thread[sizeof(key.thread) - 1] = 0;
	return counting->fn(counting->context, &key, &count);
}

#define COUNTS_AT_ONCE 1024

static int take_counts(struct reader *reader, __u32 index, const void *element)
{
	const __u64 *thread_place = element;
	struct inside_count counts[COUNTS_AT_ONCE];
	struct inside_thread thread;
	__u64 place, n;
	int err = 0;

	if (!*thread_place || !reader__get(reader, *thread_place, &thread, sizeof(thread)))
		return 0;
	if (!thread.counts)
		return 0;
	place = thread.counts & ~(__u64)INSIDE_SHIFT;
	if ((thread.counts & INSIDE_SHIFT) > INSIDE_MAX_SHIFT || thread.state != INSIDE_READY ||
	    !thread.image || thread.image > reader->header.images.n) {
		reader->n_damaged++;
		return 0;
	}
	n = 1ULL << (thread.counts & INSIDE_SHIFT);
	for (__u64 done = 0; done < n && !err; done += COUNTS_AT_ONCE) {
		__u64 part = n - done < COUNTS_AT_ONCE ? n - done : COUNTS_AT_ONCE;

		if (!reader__get(reader, place + done * sizeof(counts[0]), counts,
				 part * sizeof(counts[0])))
			return 0;
		for (__u64 i = 0; i < part && !err; i++)
			err = read_count(reader, &thread, &counts[i]);
	}
	return err;
}

int preload__read_counts(const struct preload *preload, preload_count_fn fn, void *context)
{
	struct counting counting = { fn, context };
	struct reader reader = { .context = &counting };
	int err = reader__begin(&reader, preload);

	if (err)
		return err;
	return reader__each(&reader, &reader.header.threads, 0, sizeof(__u64), take_counts);
}
