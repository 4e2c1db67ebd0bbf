// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* A record's number that cannot be right, whatever the header says. */
#define MAX_RECORDS (1U << 26)

struct live_reading {
	struct preload_live *out;
	size_t room;
	__u64 generation;
	/* By image: whether it had ended before the last generation of the peak began. */
	bool *was_gone;
};

static int note_image(struct reader *reader, __u32 index, const void *element)
{
	const struct live_reading *reading = reader->context;
	const struct inside_image *image = element;

	reading->was_gone[index] = image->ended && image->end_generation != reading->generation;
	return 0;
}

static struct preload_record *get_record(struct reader *reader, __u32 number)
{
	struct live_reading *reading = reader->context;

	if (number > reader->header.live.n_records || number > MAX_RECORDS) {
		reader->n_damaged++;
		return NULL;
	}
	if (array__reserve_zeroed(&reading->out->records, &reading->room, number,
				  sizeof(*reading->out->records)))
		return NULL;
	if (number > reading->out->n_records)
		reading->out->n_records = number;
	return &reading->out->records[number - 1];
}

static void add_bucket(struct reader *reader, struct preload_record *record, __u32 tag, __u64 n)
{
	if (tag && tag <= 2 * AP_BUCKETS)
		record->buckets[tag - 1] += n;
	else
		reader->n_damaged++;
}

static void add_histograms(struct reader *reader, struct preload_record *record,
			   const struct ap_blocks *from)
{
	const struct inside_array *array = &reader->header.histograms;
	__u32 index = from->histograms - 1, chunk = 0, first = 0;
	struct ap_histograms wide;

	for (int i = 0; i < AP_SLOTS; i++)
		if (from->tags >> 8 * i & 0xff)
			add_bucket(reader, record, from->tags >> 8 * i & 0xff, from->slots[i]);
	if (!from->histograms)
		return;
	while (chunk < INSIDE_CHUNKS && index - first >= (__u32)INSIDE_FIRST << chunk)
		first += INSIDE_FIRST << chunk++;
	if (index >= array->n || chunk == INSIDE_CHUNKS || !array->chunks[chunk]) {
		reader->n_damaged++;
		return;
	}
	if (!reader__get(reader, array->chunks[chunk] + (index - first) * sizeof(wide), &wide,
			 sizeof(wide)))
		return;
	for (__u32 i = 0; i < 2 * AP_BUCKETS; i++)
		record->buckets[i] += wide.buckets[i];
}

/* The sums are of numbers modulo 2^64: a thread that frees what others allocate has less than nothing live. */
static int add_share(struct reader *reader, const struct inside_thread *thread, const void *entry)
{
	const struct live_reading *reading = reader->context;
	const struct inside_record *from = entry;
	struct preload_record *record;
	struct ap_blocks share = { 0 };

	if (!from->record)
		return 0;
	record = get_record(reader, from->record);
	if (!record)
		return 0;
	memcpy(&share, from->blocks, sizeof(from->blocks));
	if (from->stack) {
		if (from->function >= AP_DEFINED || record->key.stack) {
			reader->n_damaged++;
			return 0;
		}
		record->key.stack = from->stack;
		record->key.process = thread->image;
		record->key.function = from->function;
		memcpy(record->key.thread, thread->comm, sizeof(record->key.thread) - 1);
	}
	record->blocks.calls += share.calls;
	record->blocks.asked_bytes += share.asked_bytes;
	record->blocks.failed += share.failed;
	record->blocks.allocations += share.allocations;
	record->blocks.size_bytes += share.size_bytes;
	record->blocks.frees += share.frees;
	record->blocks.freed_bytes += share.freed_bytes;
	record->blocks.temporary += share.temporary;
	record->blocks.temporary_bytes += share.temporary_bytes;
	/* It has not changed since before the last generation of the peak began. */
	if (share.generation != reading->generation) {
		bool was_gone = reading->was_gone[thread->image - 1];

		share.peak = was_gone ? 0 : share.allocations - share.frees;
		share.peak_bytes = was_gone ? 0 : share.size_bytes - share.freed_bytes;
	}
	record->blocks.peak += share.peak;
	record->blocks.peak_bytes += share.peak_bytes;
	record->blocks.generation = reading->generation;
	add_histograms(reader, record, &share);
	return 0;
}

static int take_records(struct reader *reader, __u32 index, const void *element)
{
	struct inside_thread thread;

	if (!reader__get_thread(reader, *(const __u64 *)element, &thread))
		return 0;
	return reader__each_entry(reader, &thread, thread.records, sizeof(struct inside_record),
				  add_share);
}

int preload__read_live(const struct preload *preload, struct preload_live *out)
{
	struct live_reading reading = { .out = out };
	struct reader reader = { .context = &reading };
	int err = reader__begin(&reader, preload);

	*out = (struct preload_live){ 0 };
	if (err)
		return err;
	reading.generation = reader.header.live.generation;
	out->max_bytes = reader.header.live.max_bytes;
	reading.was_gone = calloc(reader.header.images.n + 1UL, sizeof(*reading.was_gone));
	if (!reading.was_gone)
		return -ENOMEM;
	err = reader__each(&reader, &reader.header.images, 0, sizeof(struct inside_image),
			   note_image);
	if (!err)
		err = reader__each(&reader, &reader.header.threads, 0, sizeof(__u64), take_records);
	free(reading.was_gone);
	if (err)
		preload_live__free(out);
	return err;
}

void preload_live__free(struct preload_live *live)
{
	free(live->records);
	*live = (struct preload_live){ 0 };
}

struct block_reading {
	preload_block_fn fn;
	void *context;
};

static int read_block(struct reader *reader, __u32 image, const struct inside_block *from)
{
	const struct block_reading *reading = reader->context;
	struct ap_block_key key = { .address = from->key >> 16, .space = image + 1 };
	struct ap_block block = {
		.size_bytes = from->size >> 16,
		.birth_ns = from->birth_ns,
		.record = (from->key & 0xffff) | (from->size & 0xffff) << 16,
		.thread = from->thread,
		.sequence = from->sequence,
		.weight = 1,
	};

	if (from->key <= INSIDE_BLOCK_WRITTEN)
		return 0;
	if (!block.record || block.record > reader->header.live.n_records) {
		reader->n_damaged++;
		return 0;
	}
	return reading->fn(reading->context, &key, &block);
}

static int take_blocks(struct reader *reader, __u32 index, const void *element)
{
	const __u32 at_once = 1 << INSIDE_FIRST_BLOCKS;
	const struct inside_image *image = element;
	struct inside_block *slots = malloc(at_once * sizeof(*slots));
	int err = slots ? 0 : -ENOMEM;

	for (int table = 0; table < INSIDE_BLOCK_TABLES && !err; table++)
		for (__u64 part = 0; image->blocks[table] && part < 1ULL << table && !err; part++) {
			__u64 begin = image->blocks[table] + part * at_once * sizeof(*slots);

			if (!reader->left ||
			    reader__next_data(reader, begin, begin + at_once * sizeof(*slots)) >=
				    begin + at_once * sizeof(*slots))
				continue;
			if (!reader__get(reader,
					 image->blocks[table] + part * at_once * sizeof(*slots),
					 slots, at_once * sizeof(*slots)))
				break;
			for (__u32 i = 0; i < at_once && !err; i++)
				err = read_block(reader, index, &slots[i]);
		}
	free(slots);
	return err;
}

int preload__read_blocks(const struct preload *preload, preload_block_fn fn, void *context)
{
	struct block_reading reading = { fn, context };
	struct reader reader = { .context = &reading };
	int err = reader__begin(&reader, preload);

	return err ? err
		   : reader__each(&reader, &reader.header.images, 0, sizeof(struct inside_image),
				  take_blocks);
}

struct lifetime_reading {
	preload_lifetime_fn fn;
	void *context;
};

static int read_lifetime(struct reader *reader, const struct inside_thread *thread,
			 const void *entry)
{
	const struct lifetime_reading *reading = reader->context;
	const struct inside_lifetime *from = entry;

	if (!from->lifetime.blocks)
		return 0;
	if (!from->key.record || from->key.record > reader->header.live.n_records ||
	    from->key.shift > 63 || from->key.born > from->key.died) {
		reader->n_damaged++;
		return 0;
	}
	return reading->fn(reading->context, &from->key, &from->lifetime);
}

static int take_lifetimes(struct reader *reader, __u32 index, const void *element)
{
	struct inside_thread thread;

	if (!reader__get_thread(reader, *(const __u64 *)element, &thread))
		return 0;
	return reader__each_entry(reader, &thread, thread.lifetimes, sizeof(struct inside_lifetime),
				  read_lifetime);
}

int preload__read_lifetimes(const struct preload *preload, preload_lifetime_fn fn, void *context)
{
	struct lifetime_reading reading = { fn, context };
	struct reader reader = { .context = &reading };
	int err = reader__begin(&reader, preload);

	return err ? err
		   : reader__each(&reader, &reader.header.threads, 0, sizeof(__u64),
				  take_lifetimes);
}
