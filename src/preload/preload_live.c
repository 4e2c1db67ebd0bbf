// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads blocks, their lifetimes and histograms from the shared memory of the processes. */
#include "preload_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "sample_abi.h"

/* The longest epochs that are accepted: 1024 epochs of 2^48 ns are 9000 years. */
#define MAX_EPOCH_SHIFT 48

struct live_reading {
	struct preload_live *out;
	size_t room;
	__u64 generation;
	/* was_gone[n]: program n had ended before the last generation of the peak began. */
	bool *was_gone;
};

static int note_program(struct reader *reader, __u32 index, const void *element)
{
	const struct live_reading *reading = reader->context;
	const struct inside_program *program = element;

	reading->was_gone[index] =
		program->ended != INSIDE_RUNS && program->end_generation != reading->generation;
	return 0;
}

static struct preload_record *get_record(struct reader *reader, __u32 number)
{
	struct live_reading *reading = reader->context;

	if (number > reader->header.live.n_records) {
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

/* Adds to a bucket in the record itself or, if the record has no room, in @more; the threads of
 * the target do the same. Fails with -ENOMEM. */
static int add_bucket(struct reader *reader, struct preload_record *record, __u32 tag, __u64 n)
{
	struct ap_blocks *blocks = &record->blocks;
	__u64 *slot;

	if (!tag || tag > 2 * AP_BUCKETS) {
		reader->n_damaged++;
		return 0;
	}
	slot = ap_blocks__slot(blocks, tag);
	if (slot) {
		*slot += n;
		return 0;
	}
	if (!record->more)
		record->more = calloc(1, sizeof(*record->more));
	if (!record->more)
		return -ENOMEM;
	record->more->buckets[tag - 1] += n;
	return 0;
}

static int add_histograms(struct reader *reader, struct preload_record *record,
			  const struct ap_blocks *from)
{
	const struct inside_array *array = &reader->header.histograms;
	__u32 index = from->histograms - 1, chunk = 0, first = 0;
	struct ap_histograms wide;
	int err = 0;

	for (int i = 0; i < AP_SLOTS && !err; i++)
		if (from->tags >> 8 * i & 0xff)
			err = add_bucket(reader, record, from->tags >> 8 * i & 0xff,
					 from->slots[i]);
	if (err || !from->histograms)
		return err;
	while (chunk < INSIDE_CHUNKS && index - first >= (__u32)INSIDE_FIRST << chunk)
		first += INSIDE_FIRST << chunk++;
	if (index >= array->n || chunk == INSIDE_CHUNKS || !array->chunks[chunk]) {
		reader->n_damaged++;
		return 0;
	}
	if (!reader__get(reader, array->chunks[chunk] + (index - first) * sizeof(wide), &wide,
			 sizeof(wide)))
		return 0;
	for (__u32 i = 0; i < 2 * AP_BUCKETS && !err; i++)
		if (wide.buckets[i])
			err = add_bucket(reader, record, i + 1, wide.buckets[i]);
	return err;
}

static void add_estimate(struct ap_estimate *sum, const struct ap_estimate *estimate)
{
	sum->samples = reader__add(sum->samples, estimate->samples);
	sum->variance = reader__add(sum->variance, estimate->variance);
	sum->bytes_variance = reader__add(sum->bytes_variance, estimate->bytes_variance);
}

/* Adds a thread's share of a record. Sums are modulo 2^64, since a thread that frees blocks of
 * other threads has a negative number of live ones. */
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
	if (reader->sampling->sample)
		memcpy(&share.of_calls, &((const struct inside_sampled_record *)from)->of_calls,
		       sizeof(share) - AP_BLOCKS_BYTES);
	if (from->stack) {
		if (!reader__has_function(reader, from->function) || record->key.stack) {
			reader->n_damaged++;
			return 0;
		}
		record->key.stack = from->stack;
		record->key.process = thread->program;
		record->key.function = from->function;
		memcpy(record->key.thread, thread->comm, sizeof(record->key.thread) - 1);
	}
	record->blocks.calls += share.calls;
	record->blocks.asked_bytes = reader__add(record->blocks.asked_bytes, share.asked_bytes);
	record->blocks.failed += share.failed;
	record->blocks.allocations += share.allocations;
	record->blocks.size_bytes += share.size_bytes;
	record->blocks.frees += share.frees;
	record->blocks.freed_bytes += share.freed_bytes;
	record->blocks.temporary += share.temporary;
	record->blocks.temporary_bytes += share.temporary_bytes;
	record->blocks.grown += share.grown;
	record->blocks.grown_bytes += share.grown_bytes;
	record->blocks.freed_by_others += share.freed_by_others;
	/* The share has not changed since before the last generation of the peak began. */
	if (share.generation != reading->generation) {
		bool was_gone = reading->was_gone[thread->program - 1];

		share.peak = was_gone ? 0 : share.allocations - share.frees;
		share.peak_bytes = was_gone ? 0 : share.size_bytes - share.freed_bytes;
	}
	record->blocks.peak += share.peak;
	record->blocks.peak_bytes += share.peak_bytes;
	record->blocks.generation = reading->generation;
	add_estimate(&record->blocks.of_calls, &share.of_calls);
	add_estimate(&record->blocks.of_allocations, &share.of_allocations);
	add_estimate(&record->blocks.of_frees, &share.of_frees);
	add_estimate(&record->blocks.of_temporary, &share.of_temporary);
	return add_histograms(reader, record, &share);
}

static int take_records(struct reader *reader, __u32 index, const void *element)
{
	struct inside_thread thread;

	if (!reader__get_thread(reader, *(const __u64 *)element, &thread))
		return 0;
	return reader__each_entry(reader, &thread, thread.records,
				  reader->sampling->sample ? sizeof(struct inside_sampled_record)
							   : sizeof(struct inside_record),
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
	/* What is live now may be the peak: a new generation begins, as it does when a process
	 * ends. */
	if ((__s64)reader.header.live.size_bytes > 0 &&
	    (__u64)reader.header.live.size_bytes > reader.header.live.mark_bytes)
		reading.generation++;
	out->generation = reading.generation;
	out->max_bytes = reader__add(0, reader.header.live.max_bytes);
	out->epoch_shift = reader.header.live.epoch_shift;
	if (out->epoch_shift < AP_FIRST_EPOCH_SHIFT || out->epoch_shift > MAX_EPOCH_SHIFT)
		out->epoch_shift = AP_FIRST_EPOCH_SHIFT;
	reading.was_gone = calloc(reader.n_programs + 1UL, sizeof(*reading.was_gone));
	if (!reading.was_gone)
		return -ENOMEM;
	err = reader__each(&reader, &reader.header.programs, 0, sizeof(struct inside_program),
			   note_program);
	if (!err)
		err = reader__each(&reader, &reader.header.threads, 0, sizeof(__u64), take_records);
	free(reading.was_gone);
	out->read_bytes = reader.read_bytes;
	if (err)
		preload_live__free(out);
	return err;
}

void preload_live__free(struct preload_live *live)
{
	for (size_t i = 0; i < live->n_records; i++)
		free(live->records[i].more);
	free(live->records);
	*live = (struct preload_live){ 0 };
}

struct block_reading {
	preload_block_fn fn;
	void *context;
};

/* Returns the weight of a block, rounded down, which follows from its size. */
static __u32 weight_of(const struct ap_config *sampling, __u64 size, __u64 size_bytes)
{
	__u64 chance = sampling->sample ? ap_sample__chance(sampling, size_bytes) : 0;

	return chance ? ap_sample__weight(chance, ~0ULL) + (size >> 63) : 1;
}

static int read_block(struct reader *reader, __u32 program, const struct inside_block *from)
{
	const struct block_reading *reading = reader->context;
	struct ap_block_key key = { .address = from->key >> 16, .space = program + 1 };
	struct ap_block block = {
		.size_bytes = (from->size & ~INSIDE_BLOCK_UP) >> 16,
		.birth_ns = from->birth_ns,
		.record = (from->key & 0xffff) | (from->size & 0xffff) << 16,
		.thread = from->thread,
		.sequence = from->sequence,
		.weight = 1,
	};

	if (from->key <= INSIDE_BLOCK_WRITTEN)
		return 0;
	block.weight = weight_of(reader->sampling, from->size, block.size_bytes);
	if (!block.record || block.record > reader->header.live.n_records) {
		reader->n_damaged++;
		return 0;
	}
	return reading->fn(reading->context, &key, &block);
}

static int take_blocks(struct reader *reader, __u32 index, const void *element)
{
	const __u32 at_once = 1 << INSIDE_FIRST_BLOCKS;
	const struct inside_program *program = element;
	struct inside_block *slots = malloc(at_once * sizeof(*slots));
	int err = slots ? 0 : -ENOMEM;

	for (int table = 0; table < INSIDE_BLOCK_TABLES && !err; table++)
		for (__u64 part = 0; program->blocks[table] && part < 1ULL << table && !err;
		     part++) {
			__u64 begin = program->blocks[table] + part * at_once * sizeof(*slots);

			if (!reader->left ||
			    reader__next_data(reader, begin, begin + at_once * sizeof(*slots)) >=
				    begin + at_once * sizeof(*slots))
				continue;
			if (!reader__get(reader,
					 program->blocks[table] + part * at_once * sizeof(*slots),
					 slots, at_once * sizeof(*slots)))
				break;
			for (__u32 i = 0; i < at_once && !err; i++)
				err = read_block(reader, index, &slots[i]);
		}
	free(slots);
	return err;
}

int preload__read_blocks(const struct preload *preload, preload_block_fn fn, void *context,
			 __u64 *read_bytes)
{
	struct block_reading reading = { fn, context };
	struct reader reader = { .context = &reading };
	int err = reader__begin(&reader, preload);

	if (!err)
		err = reader__each(&reader, &reader.header.programs, 0,
				   sizeof(struct inside_program), take_blocks);
	if (read_bytes)
		*read_bytes = reader.read_bytes;
	return err;
}

struct program_reading {
	__u32 number;
	struct inside_program *out;
	bool is_found;
};

static int take_program(struct reader *reader, __u32 index, const void *element)
{
	struct program_reading *reading = reader->context;

	if (index != reading->number)
		return 0;
	memcpy(reading->out, element, sizeof(*reading->out));
	reading->is_found = true;
	return 1;
}

int preload__read_program(const struct preload *preload, __u32 number, struct inside_program *out)
{
	struct program_reading reading = { number, out };
	struct reader reader = { .context = &reading };
	int err = reader__begin(&reader, preload);

	if (!err)
		err = reader__each(&reader, &reader.header.programs, number,
				   sizeof(struct inside_program), take_program);
	return err < 0 ? err : reading.is_found ? 0 : -ENOENT;
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
	    from->key.shift < AP_FIRST_EPOCH_SHIFT || from->key.shift > MAX_EPOCH_SHIFT ||
	    from->key.born > from->key.died || from->key.died >= AP_MAX_EPOCHS) {
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
