// SPDX-License-Identifier: GPL-3.0-or-later
/* Passes blocks from the shared memory to the live collector. */
#include "preload_engine_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "live_collector.h"
#include "preload_internal.h"
#include "profile.h"
#include "reach.h"
#include "remote.h"
#include "target.h"

int preload_engine__open_live(struct preload_engine *engine)
{
	const struct live_collector_options options = {
		/* preload__read_live() checks the numbers of records. */
		.max_records = UINT32_MAX,
		.sample = engine->options.sample_bytes,
		.sample_unit_shift = engine->sample_unit_shift,
		.stacks = engine->options.stacks,
		.resident = engine->options.resident_memory,
		.reach = engine->options.reach,
		.interval_ns = engine->options.interval_ns,
		.epoch_shift = &engine->epoch_shift,
		.generation = &engine->generation,
		.target = &engine->target->pid,
	};

	engine->epoch_shift = AP_FIRST_EPOCH_SHIFT;
	engine->live = live_collector__new(&options);
	return engine->live ? 0 : -ENOMEM;
}

__u32 preload_engine__max_records(const struct session_options *options)
{
	__u64 n;

	if (options->max_records)
		return options->max_records;
	n = options->memory_bytes / SESSION_RECORDS_SHARE / sizeof(struct inside_record);
	return n < INT_MAX ? n : INT_MAX;
}

/* Bytes of shared memory for each block: its slot, and the empty slots in the same pages. */
#define BLOCK_BYTES (2 * sizeof(struct inside_block))

/* Returns the largest number of live blocks; 0: there is no limit, and threads need not share a
 * counter of blocks. */
__u64 preload_engine__max_blocks(const struct session_options *options)
{
	if (options->max_live || options->free_bytes == UINT64_MAX)
		return options->max_live;
	return options->memory_bytes / SESSION_BLOCKS_SHARE / BLOCK_BYTES ?: 1;
}

int preload_engine__start_live(struct preload_engine *engine, __u64 now_ns)
{
	live_collector__start(engine->live, now_ns, true);
	return preload__set_epoch(engine->preload, now_ns);
}

/* What the last process left behind. */
static void leave(const struct preload_results *counted, struct timeline_sample *sample)
{
	const struct preload_program *last = NULL;

	for (size_t i = 0; i < counted->n_programs; i++)
		if (counted->programs[i].pid &&
		    (!last || counted->programs[i].end_ns >= last->end_ns))
			last = &counted->programs[i];
	if (last && last->live_blocks > 0 && last->live_bytes > 0) {
		sample->live = last->live_blocks;
		sample->live_bytes = last->live_bytes;
	}
}

static void sum_live(const struct preload_engine *engine, const struct preload_results *counted,
		     __s64 *blocks, __s64 *size_bytes)
{
	*blocks = *size_bytes = 0;
	for (size_t i = 0; i < counted->n_programs; i++) {
		if (i < engine->n_programs && engine->programs[i] == PROGRAM_ENDED)
			continue;
		*blocks += counted->programs[i].live_blocks;
		*size_bytes += counted->programs[i].live_bytes;
	}
}

static void note_blocks(struct preload_engine *engine, __u64 blocks)
{
	if (blocks > engine->memory.entries)
		engine->memory.entries = blocks;
}

static int add_timeline_sample(struct preload_engine *engine, const struct preload_results *counted,
			       __u64 begin_ns)
{
	struct timeline_sample sample = {
		.allocations = counted->stats[AP_STAT_ALLOCATIONS],
		.size_bytes = counted->stats[AP_STAT_ALLOCATED_BYTES],
	};
	__s64 blocks, size_bytes;

	sum_live(engine, counted, &blocks, &size_bytes);
	if (live_collector__is_deserted(engine->live)) {
		leave(counted, &sample);
	} else if (blocks > 0 && size_bytes > 0) {
		sample.live = blocks;
		sample.live_bytes = size_bytes;
	}
	note_blocks(engine, sample.live);
	return live_collector__add_timeline_sample(engine->live, &sample, begin_ns);
}

int preload_engine__attend_live(struct preload_engine *engine)
{
	__u64 begin_ns = clock__now_ns();
	struct preload_results counted;
	int err;

	if (!engine->options.stacks || live_collector__due_ns(engine->live))
		return 0;
	err = preload__read(engine->preload, &counted);
	if (err)
		return err;
	err = preload_engine__take_programs(engine, &counted);
	if (!err)
		err = add_timeline_sample(engine, &counted, begin_ns);
	preload_results__free(&counted);
	return err;
}

int preload_engine__live_timeout_ms(const struct preload_engine *engine, int most)
{
	__u64 ms = (live_collector__due_ns(engine->live) + NS_PER_MS - 1) / NS_PER_MS;

	if (!engine->options.stacks)
		return most;
	return ms < (__u64)most ? (int)ms : most;
}

__u64 preload_engine__live_bytes(const struct preload_engine *engine,
				 const struct preload_results *counted)
{
	__s64 blocks, size_bytes;

	sum_live(engine, counted, &blocks, &size_bytes);
	return size_bytes > 0 ? size_bytes : 0;
}

int preload_engine__stop_live(struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->counted;
	__u64 blocks = 0;

	for (size_t i = 0; i < counted->n_programs; i++)
		if (counted->programs[i].live_blocks > 0)
			blocks += counted->programs[i].live_blocks;
	note_blocks(engine, blocks);
	live_collector__end(engine->live, preload_engine__end_ns(engine));
	return engine->options.stacks ? add_timeline_sample(engine, counted, clock__now_ns()) : 0;
}

static int list_block(void *context, const struct ap_block_key *key, const struct ap_block *block)
{
	struct reach_process *out = context;

	return key->space == out->space
		       ? reach_blocks__add(&out->blocks, key->address, block->size_bytes)
		       : 0;
}

/* Learns of processes that have come since the last sample of the time line. */
static int read_programs(struct preload_engine *engine)
{
	struct preload_results counted;
	int err = preload__read(engine->preload, &counted);

	if (err)
		return err;
	err = preload_engine__take_programs(engine, &counted);
	preload_results__free(&counted);
	return err;
}

/* Lists what the library has mapped in the process, and the library itself. */
static int read_own(const struct preload_engine *engine, pid_t pid, struct reach_process *out)
{
	_cleanup_(free_ptr) struct inside_mappings *mappings = malloc(sizeof(*mappings));
	struct inside_program program;
	int err;

	if (!mappings)
		return -ENOMEM;
	err = preload__read_program(engine->preload, out->space - 1, &program);
	if (!err)
		err = process_memory__read(pid, program.mappings, mappings, sizeof(*mappings));
	if (!err)
		err = reach_ranges__add(&out->own, program.library, program.library_end);
	for (__u32 i = 0; !err && i < mappings->n && i < INSIDE_MAX_MAPPINGS; i++)
		if (mappings->list[i].start > INSIDE_MAPPING_WRITTEN)
			err = reach_ranges__add(&out->own, mappings->list[i].start,
						mappings->list[i].end);
	return err;
}

int preload_engine__read_blocks(struct engine *base, pid_t pid, struct reach_process *out)
{
	struct preload_engine *engine = preload_engine__of(base);
	int err = read_programs(engine);

	if (err)
		return err;
	out->owner = engine->live;
	out->space = live_collector__space(engine->live, pid);
	if (!out->space)
		return -ESRCH;
	err = read_own(engine, pid, out);
	return err ? err : preload__read_blocks(engine->preload, list_block, out, NULL);
}

static int handle_block(void *context, const struct ap_block_key *key, const struct ap_block *block)
{
	const struct preload_engine *engine = context;

	return live_collector__add_block(engine->live, key, block);
}

static int handle_lifetime(void *context, const struct ap_lifetime_key *key,
			   const struct ap_lifetime *lifetime)
{
	struct preload_engine *engine = context;

	return live_collector__add_lifetime(engine->live, key, lifetime->blocks,
					    lifetime->size_bytes);
}

static int add_record(struct preload_engine *engine, const struct preload_record *record,
		      __u32 number)
{
	bool only_counts =
		definition_names__counts(&engine->profile->definitions, record->key.function);

	/* No call has used the record, or the thread that used it was killed before it wrote the
	 * key. */
	if (!record->key.stack || !record->blocks.calls)
		return 0;
	engine->memory.records++;
	/* Calls that are only counted hand out no block, and are not awaited. */
	if (!only_counts)
		engine->n_calls += record->blocks.calls;
	if (engine->events && !only_counts) {
		int err = preload_engine__log_unfinished(engine, number, &record->blocks);

		if (err)
			return err;
	}
	if (engine->options.stacks)
		return live_collector__add_record(engine->live, engine->collector, &record->key,
						  number, &record->blocks, record->more, false);
	return 0;
}

static int add_records(struct preload_engine *engine, const struct preload_live *live)
{
	int err = 0;

	for (size_t i = 0; i < live->n_records && !err; i++)
		err = add_record(engine, &live->records[i], i + 1);
	return err;
}

/* Lifetimes and live blocks are collected before the records to which they belong. */
int preload_engine__collect_live(struct preload_engine *engine)
{
	struct preload_live live;
	int err = preload__read_live(engine->preload, &live);

	if (err)
		return err;
	engine->generation = live.generation;
	engine->epoch_shift = live.epoch_shift;
	engine->peak_bytes = live.max_bytes;
	engine->memory.record_bytes = live.read_bytes;
	if (engine->options.stacks)
		err = preload__read_lifetimes(engine->preload, handle_lifetime, engine);
	if (!err)
		err = preload__read_blocks(engine->preload, handle_block, engine,
					   &engine->memory.block_bytes);
	if (!err)
		err = add_records(engine, &live);
	if (!err && engine->options.stacks)
		err = live_collector__finish(engine->live, engine->collector);
	preload_live__free(&live);
	return err;
}

/* Returns the number of calls that had not returned when their thread or the recording ended. */
static __u64 count_unfinished(const struct live_totals *live, __u64 calls)
{
	__u64 known = live->stats[AP_STAT_ALLOCATIONS] + live->stats[AP_STAT_FAILED] +
		      live->stats[AP_STAT_RELEASED] + live->untracked;

	return calls > known ? calls - known : 0;
}

void preload_engine__add_live(const struct preload_engine *engine)
{
	struct live_totals *live = &engine->profile->totals.live;

	engine->profile->totals.has_live = true;
	memcpy(live->stats, engine->counted.stats, sizeof(live->stats));
	for (int i = 0; i < AP_UNTRACKED_REASONS; i++)
		live->untracked += live->stats[AP_STAT_UNTRACKED + i];
	live->unfinished = count_unfinished(live, engine->n_calls);
	live->discarded = live_collector__discarded(engine->live, &live->discarded_bytes);
	live->blocks =
		live->stats[AP_STAT_ALLOCATIONS] - live->stats[AP_STAT_FREES] - live->discarded;
	live->size_bytes = live->stats[AP_STAT_ALLOCATED_BYTES] - live->stats[AP_STAT_FREED_BYTES] -
			   live->discarded_bytes;
	live->peak_bytes = engine->peak_bytes;
	live_collector__epochs(engine->live, live);
	live->memory = engine->memory;
	/* The limit is for each process, which has tables of its own. */
	live->memory.max_blocks =
		preload_engine__max_blocks(&engine->options) ?: PRELOAD_MAX_BLOCKS;
	live->memory.max_records = preload_engine__max_records(&engine->options);
}
