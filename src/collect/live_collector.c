// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns records, blocks that were not freed, and lifetimes into a profile, and keeps the time
 * line. */
#include "live_collector.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "live_mappings.h"
#include "live_notes.h"
#include "live_spaces.h"
#include "profile.h"
#include "reach.h"
#include "record_abi.h"
#include "resident.h"
#include "resident_memory.h"
#include "sampling.h"
#include "timeline.h"

/* At most 1/SAMPLE_SHARE of the time is spent on reading the processes' memory sizes: with many
 * processes samples are further apart. */
#define SAMPLE_SHARE 50

/* The peak share of a retired record, valid unless a later generation of the peak begins. */
struct peak_candidate {
	__u32 count;
	__u64 peak, peak_bytes;
};

struct live_collector {
	struct live_collector_options options;
	__u64 start_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns;	/* 0 while the recording runs */
	struct live_spaces spaces;
	/* Address spaces have ended whose blocks and records are not retired. */
	bool has_ended_spaces;
	struct live_notes notes;
	struct live_mappings *mappings; /* NULL until the first change of mappings */
	struct peak_candidate *candidates;
	size_t n_candidates, candidates_room;
	__u64 candidates_generation; /* generation of the peak to which the candidates belong */
	struct lifetimes *lifetimes; /* lifetimes of records that are not in the profile yet */
	__u32 moved_shift;	     /* epoch shift of the lifetimes in the profile */
	__u64 discarded, discarded_bytes;
	__u64 n_implausible; /* number of records and lifetimes with numbers that cannot be right */
	struct timeline timeline;
	struct resident_block *blocks; /* live ones, if parts of processes' memory are asked for */
	size_t n_blocks, blocks_room;
};

struct live_collector *live_collector__new(const struct live_collector_options *options)
{
	struct live_collector *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->options = *options;
	live->notes.max_records = options->max_records;
	live->timeline.interval_ns = options->interval_ns;
	live->moved_shift = AP_FIRST_EPOCH_SHIFT;
	live->lifetimes = lifetimes__new();
	if (!live->lifetimes) {
		live_collector__free(live);
		return NULL;
	}
	return live;
}

void live_collector__free(struct live_collector *live)
{
	if (!live)
		return;
	live_spaces__release(&live->spaces);
	live_notes__release(&live->notes);
	live_mappings__free(live->mappings);
	free(live->candidates);
	free(live->blocks);
	lifetimes__free(live->lifetimes);
	timeline__release(&live->timeline);
	free(live);
}

void live_collector__start(struct live_collector *live, __u64 now_ns, bool is_new)
{
	live->start_ns = now_ns;
	if (is_new)
		timeline__add(&live->timeline, &(struct timeline_sample){ 0 });
}

void live_collector__end(struct live_collector *live, __u64 end_ns)
{
	live->end_ns = end_ns;
}

bool live_collector__has_ended(const struct live_collector *live)
{
	return live->end_ns;
}

bool live_collector__may_retire(const struct live_collector *live)
{
	return live->has_ended_spaces && live->options.stacks;
}

bool live_collector__is_used(const struct live_collector *live, __u32 space)
{
	return live_spaces__get(&live->spaces, space)->state == SPACE_USED;
}

__u32 live_collector__space(const struct live_collector *live, pid_t pid)
{
	return live_spaces__of_process(&live->spaces, pid);
}

bool live_collector__is_program_used(const struct live_collector *live, __u32 program)
{
	return live_spaces__of_program(&live->spaces, program)->state == SPACE_USED;
}

/* Adds a lifetime under its record's number, since the record's index is reused. */
static int add_lifetime(struct live_collector *live, const struct lifetime_key *key, __u64 blocks,
			__u64 size_bytes)
{
	struct lifetime_key numbered = *key;
	int err = live_notes__number(&live->notes, key->record, &numbered.record);

	return err ? err : lifetimes__add(live->lifetimes, &numbered, blocks, size_bytes);
}

int live_collector__add_lifetime(struct live_collector *live, const struct ap_lifetime_key *key,
				 __u64 blocks, __u64 size_bytes)
{
	const struct lifetime_key freed = {
		.record = key->record,
		.shift = key->shift,
		.born = key->born,
		.died = key->died,
		.exited = PROFILE_LIVE,
	};

	return add_lifetime(live, &freed, blocks, size_bytes);
}

static __u64 epoch_at(const struct live_collector *live, __u64 time_ns, __u32 shift)
{
	return time_ns > live->start_ns ? (time_ns - live->start_ns) >> shift : 0;
}

/* Returns log2 of the current epoch length, which is only updated when blocks end. */
static __u32 epoch_shift(const struct live_collector *live)
{
	__u64 end_ns = live->end_ns ? live->end_ns : clock__now_ns();
	__u32 shift = *live->options.epoch_shift;

	while (epoch_at(live, end_ns, shift) >= AP_MAX_EPOCHS)
		shift++;
	return shift;
}

/* Adds a lifetime of a mapping, or of a part of one. */
static int add_mapping_end(void *context, const struct mapping_end *end)
{
	struct live_collector *live = context;
	__u64 last_ns = live->end_ns ? live->end_ns : UINT64_MAX;
	__u64 birth_ns = end->birth_ns < last_ns ? end->birth_ns : last_ns;
	__u64 end_ns = end->end_ns < last_ns ? end->end_ns : last_ns;
	__u32 shift = epoch_shift(live);
	struct lifetime_key key = {
		.record = end->number,
		.shift = shift,
		.born = epoch_at(live, birth_ns, shift),
		.died = PROFILE_LIVE,
		.exited = PROFILE_LIVE,
	};

	if (end->how != MAPPING_LEFT)
		key.died = epoch_at(live, end_ns, shift);
	else if (end->end_ns < last_ns)
		key.exited = epoch_at(live, end_ns, shift);
	return lifetimes__add(live->lifetimes, &key, end->mappings, end->size_bytes);
}

static int handle_mapping(struct live_collector *live, const struct ap_mapping_record *change)
{
	const struct live_mappings_options options = { add_mapping_end, live };
	__u32 number = 0;
	int err = 0;

	if (!live->mappings)
		live->mappings = live_mappings__new(&options);
	if (!live->mappings)
		return -ENOMEM;
	if (change->record != AP_NO_RECORD)
		err = live_notes__number(&live->notes, change->record, &number);
	return err ? err : live_mappings__handle(live->mappings, change, number);
}

static int handle_process(struct live_collector *live, const struct ap_process_record *record)
{
	int err = live_spaces__handle(&live->spaces, record, &live->has_ended_spaces);

	if (err || !record->ended_space || !live->mappings)
		return err;
	return live_mappings__end_space(live->mappings, record->ended_space, record->time_ns,
					record->event == AP_PROCESS_EXECED);
}

static int handle_space(struct live_collector *live, const struct ap_space_record *record)
{
	int err = live_spaces__leave(&live->spaces, record);

	live->has_ended_spaces = true;
	if (err || !live->mappings)
		return err;
	return live_mappings__end_space(live->mappings, record->space, record->time_ns, false);
}

int live_collector__handle_record(struct live_collector *live, const void *record, size_t size)
{
	switch (size < sizeof(__u32) ? (__u32)-1 : *(const __u32 *)record) {
	case AP_RECORD_PROCESS:
		return size < sizeof(struct ap_process_record) ? 0 : handle_process(live, record);
	case AP_RECORD_SPACE:
		return size < sizeof(struct ap_space_record) ? 0 : handle_space(live, record);
	case AP_RECORD_MAPPING:
		return size < sizeof(struct ap_mapping_record) ? 0 : handle_mapping(live, record);
	}
	return 0;
}

static int add_discarded(struct live_collector *live, __u32 index, const struct ap_count *sum)
{
	struct profile_estimate estimate =
		sampling__estimate(&sum->estimate, live->options.sample_unit_shift);

	live->discarded += sum->calls;
	live->discarded_bytes = profile__add_up(live->discarded_bytes, sum->size_bytes);
	return live_notes__add_discarded(&live->notes, index, sum, &estimate);
}

/* Notes whether the live block can be reached, if that was searched for. */
static int note_reached(struct live_collector *live, const struct ap_block_key *at,
			const struct ap_block *block, const struct ap_count *sum)
{
	static const enum profile_reach reaches[REACH_CLASSES] = {
		[REACH_REACHABLE] = PROFILE_REACHABLE,
		[REACH_POSSIBLE] = PROFILE_POSSIBLY_LOST,
		[REACH_INDIRECT] = PROFILE_INDIRECTLY_LOST,
		[REACH_LOST] = PROFILE_LOST,
	};
	enum reach_class class = reach__class(live->options.reach, live, at->space, at->address);

	return class == REACH_UNKNOWN
		       ? 0
		       : live_notes__add_reached(&live->notes, block->record, reaches[class], sum);
}

/* Keeps where a live block is, under its record's number until the record is in the profile. */
static int keep_block(struct live_collector *live, const struct ap_block_key *at,
		      const struct ap_block *block)
{
	struct resident_block kept = {
		.begin = at->address,
		.size_bytes = block->size_bytes,
		.space = at->space,
	};
	int err = live_notes__number(&live->notes, block->record, &kept.count);

	if (err)
		return err;
	if (array__reserve(&live->blocks, &live->blocks_room, live->n_blocks + 1,
			   sizeof(*live->blocks)))
		return -ENOMEM;
	live->blocks[live->n_blocks++] = kept;
	return 0;
}

int live_collector__add_block(struct live_collector *live, const struct ap_block_key *at,
			      const struct ap_block *block)
{
	const struct live_space *space = live_spaces__get(&live->spaces, at->space);
	/* The processor's counter may be a little ahead, and the target may go on while a copy is
	 * made. */
	__u64 birth_ns =
		live->end_ns && block->birth_ns > live->end_ns ? live->end_ns : block->birth_ns;
	__u32 shift = epoch_shift(live);
	struct lifetime_key key = {
		.record = block->record,
		.shift = shift,
		.born = epoch_at(live, birth_ns, shift),
		.died = PROFILE_LIVE,
		.exited = PROFILE_LIVE,
	};
	struct ap_count sum = sampling__count_one(block->weight, block->size_bytes,
						  live->options.sample_unit_shift);
	__u32 end = epoch_at(live, space->end_ns, shift);
	int err;

	if (end < key.born)
		end = key.born;
	if (space->state == SPACE_DISCARDED) {
		err = add_discarded(live, block->record, &sum);
		key.died = end;
	} else {
		err = live_notes__add_live(&live->notes, block->record, birth_ns);
		/* A process may end after the recording's end, but before its memory is read. */
		if (space->state == SPACE_LEFT && (!live->end_ns || space->end_ns < live->end_ns))
			key.exited = end;
		if (!err && live->options.resident)
			err = keep_block(live, at, block);
		if (!err && live->options.reach)
			err = note_reached(live, at, block, &sum);
	}
	if (err || !live->options.stacks)
		return err;
	return add_lifetime(live, &key, sum.calls, sum.size_bytes);
}

static bool has_ended(const struct live_space *space)
{
	return space->state != SPACE_USED;
}

/* Finds the record's part of the peak. If the record has not changed since the peak, that is its
 * present blocks, unless its address space ended before the peak. */
static void find_peak(const struct live_collector *live, const struct ap_blocks *record,
		      const struct live_space *space, struct peak_candidate *out)
{
	__u64 generation = *live->options.generation;

	if (record->generation == generation) {
		out->peak = record->peak;
		out->peak_bytes = record->peak_bytes;
	} else if (has_ended(space) && space->generation < generation) {
		out->peak = out->peak_bytes = 0;
	} else {
		out->peak = record->allocations - record->frees;
		out->peak_bytes = record->size_bytes - record->freed_bytes;
	}
}

/* Notes the peak share of a record of an ended address space. It counts unless a later generation
 * of the peak begins. */
static int add_candidate(struct live_collector *live, const struct peak_candidate *candidate)
{
	__u64 generation = *live->options.generation;

	if (live->candidates_generation != generation) {
		live->candidates_generation = generation;
		live->n_candidates = 0;
	}
	if (!candidate->peak && !candidate->peak_bytes)
		return 0;
	if (array__reserve(&live->candidates, &live->candidates_room, live->n_candidates + 1,
			   sizeof(*live->candidates)))
		return -ENOMEM;
	live->candidates[live->n_candidates++] = *candidate;
	return 0;
}

static void bound(__u64 *value, __u64 most, bool *was_more)
{
	if (*value > most) {
		*value = most;
		*was_more = true;
	}
}

static void bound_reached(struct profile_blocks *blocks, bool *was_more)
{
	__u64 live = profile_blocks__live(blocks), size_bytes = profile_blocks__live_bytes(blocks);

	for (int i = 0; i < PROFILE_REACHES; i++) {
		bound(&blocks->reached[i].blocks, live, was_more);
		bound(&blocks->reached[i].size_bytes, size_bytes, was_more);
		live -= blocks->reached[i].blocks;
		size_bytes -= blocks->reached[i].size_bytes;
	}
}

/* Limits numbers that cannot be right and that data files may not contain, and counts that: a
 * process in which the library counts may have written anything. */
static void make_plausible(struct live_collector *live, struct profile_blocks *blocks)
{
	bool was_more = false;

	bound(&blocks->failed, PROFILE_MAX, &was_more);
	bound(&blocks->allocations, PROFILE_MAX, &was_more);
	bound(&blocks->size_bytes, PROFILE_MAX, &was_more);
	bound(&blocks->frees, blocks->allocations, &was_more);
	bound(&blocks->freed_bytes, blocks->size_bytes, &was_more);
	bound(&blocks->discarded, blocks->allocations - blocks->frees, &was_more);
	bound(&blocks->discarded_bytes, blocks->size_bytes - blocks->freed_bytes, &was_more);
	bound(&blocks->temporary, blocks->frees, &was_more);
	bound(&blocks->temporary_bytes, blocks->freed_bytes, &was_more);
	bound(&blocks->grown, blocks->frees, &was_more);
	bound(&blocks->grown_bytes, blocks->freed_bytes, &was_more);
	bound(&blocks->freed_by_others, blocks->frees - blocks->grown, &was_more);
	bound(&blocks->peak, PROFILE_MAX, &was_more);
	bound(&blocks->peak_bytes, PROFILE_MAX, &was_more);
	bound(&blocks->oldest_ns, PROFILE_MAX, &was_more);
	bound_reached(blocks, &was_more);
	for (int i = 0; i < PROFILE_BUCKETS; i++) {
		bound(&blocks->sizes[i], PROFILE_MAX, &was_more);
		bound(&blocks->lifetimes[i], PROFILE_MAX, &was_more);
	}
	live->n_implausible += was_more;
}

static int add_candidates(struct live_collector *live, struct profile *profile)
{
	int err = 0;

	if (live->candidates_generation != *live->options.generation)
		return 0;
	for (size_t i = 0; i < live->n_candidates && !err; i++) {
		const struct peak_candidate *candidate = &live->candidates[i];
		struct profile_blocks blocks = {
			.count = candidate->count,
			.peak = candidate->peak,
			.peak_bytes = candidate->peak_bytes,
		};

		make_plausible(live, &blocks);
		err = profile__add_blocks(profile, &blocks);
	}
	return err;
}

static void add_bucket(struct profile_blocks *blocks, __u32 tag, __u64 n)
{
	if (tag >= AP_LIFETIME_TAG && tag - AP_LIFETIME_TAG < PROFILE_BUCKETS)
		blocks->lifetimes[tag - AP_LIFETIME_TAG] += n;
	else if (tag >= AP_SIZE_TAG && tag < AP_LIFETIME_TAG)
		blocks->sizes[tag - AP_SIZE_TAG] += n;
}

static void read_histograms(const struct ap_blocks *record, const struct ap_histograms *more,
			    struct profile_blocks *blocks)
{
	for (int i = 0; i < AP_SLOTS; i++)
		add_bucket(blocks, record->tags >> 8 * i & 0xff, record->slots[i]);
	for (__u32 i = 0; more && i < 2 * AP_BUCKETS; i++)
		add_bucket(blocks, i + 1, more->buckets[i]);
}

static void read_blocks(const struct live_collector *live, const struct ap_blocks *record,
			const struct live_note *note, struct profile_blocks *blocks)
{
	blocks->failed = record->failed;
	blocks->allocations = record->allocations;
	blocks->size_bytes = record->size_bytes;
	blocks->frees = record->frees;
	blocks->freed_bytes = record->freed_bytes;
	blocks->discarded = note->discarded;
	blocks->discarded_bytes = note->discarded_bytes;
	blocks->temporary = record->temporary;
	blocks->temporary_bytes = record->temporary_bytes;
	blocks->grown = record->grown;
	blocks->grown_bytes = record->grown_bytes;
	blocks->freed_by_others = record->freed_by_others;
	if (note->reached)
		memcpy(blocks->reached, note->reached, sizeof(blocks->reached));
	if (note->oldest_ns > live->start_ns)
		blocks->oldest_ns = note->oldest_ns - live->start_ns;
}

static int add_samples(const struct live_collector *live, const struct ap_blocks *record,
		       const struct live_note *note, struct profile *profile, __u32 count)
{
	__u32 shift = live->options.sample_unit_shift;
	struct profile_estimate allocations = sampling__estimate(&record->of_allocations, shift);
	struct profile_estimate frees = sampling__estimate(&record->of_frees, shift);
	struct profile_estimate temporary = sampling__estimate(&record->of_temporary, shift);
	struct profile_estimate remaining = allocations;
	struct profile_samples *samples;
	int err = profile__get_samples(profile, count, &samples);

	if (err)
		return err;
	profile_estimate__subtract(&remaining, &frees);
	profile_estimate__subtract(&remaining, &note->of_discarded);
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_ALLOCATIONS], &allocations);
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_LIVE], &remaining);
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_TEMPORARY], &temporary);
	return 0;
}

int live_collector__add_record(struct live_collector *live, struct collector *collector,
			       const struct ap_count_key *key, __u32 index,
			       const struct ap_blocks *record,
			       const struct ap_histograms *histograms, bool retires)
{
	const struct live_note *note = live_notes__get(&live->notes, index);
	const struct live_space *space = live_spaces__of_program(&live->spaces, key->process);
	struct profile *profile = collector__profile(collector);
	struct profile_blocks blocks = { 0 };
	struct peak_candidate peak = { 0 };
	struct ap_count sum = { .calls = record->calls, .size_bytes = record->asked_bytes };
	bool was_more = false;
	int err;

	if (live->options.sample)
		sum.estimate = record->of_calls;
	err = collector__add_count(collector, key, &sum, &blocks.count);
	if (err || !blocks.count)
		return err;
	live_notes__set_count(&live->notes, note, blocks.count);
	read_blocks(live, record, note, &blocks);
	read_histograms(record, histograms, &blocks);
	find_peak(live, record, space, &peak);
	bound(&peak.peak, record->allocations, &was_more);
	bound(&peak.peak_bytes, record->size_bytes, &was_more);
	live->n_implausible += was_more;
	peak.count = blocks.count;
	if (retires) {
		err = add_candidate(live, &peak);
	} else {
		blocks.peak = peak.peak;
		blocks.peak_bytes = peak.peak_bytes;
	}
	make_plausible(live, &blocks);
	if (!err)
		err = profile__add_blocks(profile, &blocks);
	if (!err && live->options.sample)
		err = add_samples(live, record, note, profile, blocks.count);
	return err;
}

void live_collector__release_index(struct live_collector *live, __u32 index)
{
	live_notes__clear(&live->notes, index);
}

struct moving {
	struct live_collector *live;
	struct profile *profile;
	__u32 last_epoch; /* epoch in which the target ended; PROFILE_LIVE while it runs */
};

/* Moves a lifetime if its record is in the profile. Returns 1 if it was moved. */
static int move_lifetime(void *context, const struct lifetime_key *key,
			 const struct ap_lifetime *sum)
{
	const struct moving *moving = context;
	__u32 count = live_notes__count(&moving->live->notes, key->record);
	struct profile_lifetime lifetime = {
		.count = count,
		.born = key->born,
		.died = key->died,
		/* The recording ends with the target, so what the target left is live at the end. */
		.exited = key->exited < moving->last_epoch ? key->exited : PROFILE_LIVE,
		.blocks = sum->blocks,
		.size_bytes = sum->size_bytes,
	};
	bool was_more = false;
	int err;

	if (!count)
		return 0;
	bound(&lifetime.blocks, PROFILE_MAX, &was_more);
	bound(&lifetime.size_bytes, PROFILE_MAX, &was_more);
	moving->live->n_implausible += was_more;
	err = profile__add_lifetime(moving->profile, &lifetime);
	return err ? err : 1;
}

/* Moves the lifetimes of records that are in the profile, with the current epoch length. */
static int move_lifetimes(struct live_collector *live, struct profile *profile)
{
	__u32 shift = lifetimes__shift(live->lifetimes);
	__u64 end_ns = live_spaces__end_ns(&live->spaces, *live->options.target);
	struct moving moving = {
		.live = live,
		.profile = profile,
		.last_epoch = end_ns == UINT64_MAX ? PROFILE_LIVE : epoch_at(live, end_ns, shift),
	};

	if (shift > live->moved_shift)
		profile__fold_lifetimes(profile, shift - live->moved_shift);
	live->moved_shift = shift;
	return lifetimes__move(live->lifetimes, move_lifetime, &moving);
}

/* Moves the sums of mappings of records that are in the profile. */
static int move_mapping_sums(struct live_collector *live, struct profile *profile)
{
	__u32 n = live->mappings ? live_mappings__n_numbers(live->mappings) : 0;
	int err = 0;

	for (__u32 number = 1; number < n && !err; number++) {
		const struct mapping_sums *sums = live_mappings__sums(live->mappings, number);
		struct profile_blocks blocks;

		if (!sums || !live_notes__count(&live->notes, number))
			continue;
		blocks = sums->blocks;
		blocks.count = live_notes__count(&live->notes, number);
		if (sums->oldest_ns > live->start_ns)
			blocks.oldest_ns = sums->oldest_ns - live->start_ns;
		make_plausible(live, &blocks);
		err = profile__add_blocks(profile, &blocks);
		live_mappings__retire(live->mappings, number);
	}
	return err;
}

int live_collector__retire(struct live_collector *live, struct collector *collector)
{
	int err;

	live->has_ended_spaces = false;
	profile__close_counts(collector__profile(collector));
	err = move_mapping_sums(live, collector__profile(collector));
	return err ? err : move_lifetimes(live, collector__profile(collector));
}

static int compare_blocks(const void *a, const void *b)
{
	const struct resident_block *first = a, *second = b;

	if (first->space != second->space)
		return first->space < second->space ? -1 : 1;
	return first->begin < second->begin ? -1 : first->begin > second->begin;
}

/* Sorts the blocks, sets their counts, and removes those that have none, or begin within another
 * one: a process in which the library counts may have written anything. */
static void sort_blocks(struct live_collector *live)
{
	struct resident_block *blocks = live->blocks;
	size_t n = 0;

	qsort(blocks, live->n_blocks, sizeof(*blocks), compare_blocks);
	for (size_t i = 0; i < live->n_blocks; i++) {
		struct resident_block block = blocks[i];

		block.count = live_notes__count(&live->notes, block.count);
		if (!block.count || block.size_bytes > UINT64_MAX - block.begin)
			continue;
		if (n && blocks[n - 1].space == block.space &&
		    block.begin - blocks[n - 1].begin < blocks[n - 1].size_bytes)
			continue;
		blocks[n++] = block;
	}
	live->n_blocks = n;
}

static int compare_ids(const void *a, const void *b)
{
	const __u32 *first = a, *second = b;

	return first[0] < second[0] ? -1 : first[0] > second[0];
}

/* Ascribes the memory of the processes that this engine has measured, by ascending ids. */
static int account_resident(struct live_collector *live, struct profile *profile)
{
	struct resident_memory *memory = live->options.resident;
	_cleanup_(free_ptr) __u32(*known)[2] = calloc(memory->n + 1, sizeof(*known));
	size_t n = 0;
	int err = 0;

	if (!known)
		return -ENOMEM;
	sort_blocks(live);
	for (size_t i = 0; i < memory->n; i++) {
		const struct resident_process *process = &memory->processes[i];
		__u32 id = profile__find_process(profile, process->pid);

		if (!process->now.of.pid || process->is_accounted || !id ||
		    !live_spaces__of_process(&live->spaces, process->pid))
			continue;
		known[n][0] = id;
		known[n++][1] = i;
	}
	qsort(known, n, sizeof(*known), compare_ids);
	for (size_t i = 0; i < n && !err; i++) {
		struct resident_process *process = &memory->processes[known[i][1]];
		const struct resident_block *blocks = live->blocks;
		__u32 space = live_spaces__of_process(&live->spaces, process->pid);
		size_t from = ARRAY_LOWER_BOUND(live->n_blocks, at, blocks[at].space < space);
		size_t until = ARRAY_LOWER_BOUND(live->n_blocks, at, blocks[at].space <= space);

		err = resident__account(process, known[i][0], blocks + from, until - from, profile);
	}
	return err;
}

static int add_mapping_peaks(struct live_collector *live, struct profile *profile)
{
	__u32 n = live_mappings__n_numbers(live->mappings);
	int err = 0;

	for (__u32 number = 1; number < n && !err; number++) {
		struct profile_blocks blocks = {
			.count = live_notes__count(&live->notes, number),
		};

		live_mappings__peak(live->mappings, number, &blocks.peak, &blocks.peak_bytes);
		make_plausible(live, &blocks);
		if (blocks.count && blocks.peak_bytes)
			err = profile__add_blocks(profile, &blocks);
	}
	return err;
}

static int finish_mappings(struct live_collector *live, struct profile *profile)
{
	const struct live_mapping *list;
	size_t n;
	int err;

	if (!live->mappings)
		return 0;
	err = live_mappings__finish(live->mappings, live->end_ns);
	if (!err)
		err = move_mapping_sums(live, profile);
	if (!err)
		err = add_mapping_peaks(live, profile);
	list = live_mappings__list(live->mappings, &n);
	for (size_t i = 0; i < n && !err; i++) {
		struct profile_mapping mapping = list[i].mapping;

		mapping.count = live_notes__count(&live->notes, list[i].number);
		if (mapping.count)
			err = profile__add_mapping(profile, &mapping);
	}
	return err;
}

int live_collector__finish(struct live_collector *live, struct collector *collector)
{
	struct profile *profile = collector__profile(collector);
	int err = add_candidates(live, profile);

	if (!err)
		err = finish_mappings(live, profile);
	if (!err)
		err = move_lifetimes(live, profile);
	for (size_t i = 0; i < live->timeline.n && !err; i++)
		err = profile__add_timeline_sample(profile, &live->timeline.samples[i]);
	if (!err && live->options.resident)
		err = account_resident(live, profile);
	return err;
}

__u64 live_collector__due_ns(const struct live_collector *live)
{
	return timeline__due_ns(&live->timeline, clock__now_ns() - live->start_ns);
}

bool live_collector__is_deserted(const struct live_collector *live)
{
	return !live->spaces.n_running && live->spaces.n_programs;
}

int live_collector__add_timeline_sample(struct live_collector *live, struct timeline_sample *sample,
					__u64 begin_ns)
{
	int err;

	sample->time_ns = (live->end_ns ? live->end_ns : begin_ns) - live->start_ns;
	sample->rss_bytes = live_spaces__rss_bytes(&live->spaces);
	err = timeline__add(&live->timeline, sample);
	timeline__pause(&live->timeline, SAMPLE_SHARE * (clock__now_ns() - begin_ns));
	return err;
}

__u64 live_collector__implausible(const struct live_collector *live)
{
	return live->n_implausible;
}

__u64 live_collector__discarded(const struct live_collector *live, __u64 *size_bytes)
{
	*size_bytes = live->discarded_bytes;
	return live->discarded;
}

void live_collector__mappings(const struct live_collector *live, struct mapping_totals *totals)
{
	*totals = live->mappings ? *live_mappings__totals(live->mappings)
				 : (struct mapping_totals){ 0 };
}

void live_collector__epochs(const struct live_collector *live, struct live_totals *out)
{
	out->start_ns = live->start_ns;
	out->epoch_ns = 1ULL << lifetimes__shift(live->lifetimes);
}
