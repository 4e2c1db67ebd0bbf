// SPDX-License-Identifier: GPL-3.0-or-later
#include "live_records.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "collector.h"
#include "live_spaces.h"
#include "map_batch.h"
#include "sampling.h"

#define RECORDS_AHEAD	 8192
#define HISTOGRAMS_AHEAD 1024
/* Maximum number of histograms; the size of the programs' map of arrays. */
#define MAX_HISTOGRAMS (4096 << AP_HISTOGRAM_CHUNK_BITS)
/* Capacity of the first table; each further one has four times as many. */
#define FIRST_TABLE 65536
/* Kernel memory of a table's entry: key, index and 48 bytes of overhead. */
#define ENTRY_BYTES  96
#define BUCKET_BYTES 16
/* Retire when this many records, or half of those in use, have been added since the last time. */
#define RETIRE_EVERY 16384

/* User space's part of a record, by the same index. */
struct note {
	__u32 number; /* 0: none assigned */
	__u64 discarded, discarded_bytes;
	struct profile_estimate of_discarded; /* with sampling */
	__u64 oldest_ns; /* birth of the oldest live block, 0 if none is live */
};

/* Peak share of a retired record, valid unless a later peak generation begins. */
struct peak_candidate {
	__u32 count;
	__u64 peak, peak_bytes;
};

struct live_records {
	struct live_records_options options;
	struct live_pool records, histograms;
	struct table {
		int fd;
		__u32 capacity;
	} tables[AP_INDEX_TABLES];
	__u32 n_tables;
	bool is_full; /* the kernel refused another table */
	__u64 capacity;
	struct note *notes; /* by index */
	size_t n_notes;
	__u32 *counts; /* profile counts, by the record's number - 1 */
	size_t counts_room;
	__u32 n_numbers;
	struct peak_candidate *candidates;
	size_t n_candidates, candidates_room;
	__u64 candidates_generation; /* peak generation of the candidates */
	__u64 retire_at;	     /* number of records in use at which to retire */
	__u64 most_used;	     /* maximum number in use, as observed */
};

/* Adds a table, four times as large as the last one. */
static int add_table(struct live_records *records)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	struct table *table = &records->tables[records->n_tables];
	__u32 at = records->n_tables;

	if (at == AP_INDEX_TABLES)
		return 0;
	table->capacity = at ? 4 * records->tables[at - 1].capacity : FIRST_TABLE;
	table->fd = bpf_map_create(BPF_MAP_TYPE_HASH, "index_table", sizeof(struct ap_count_key),
				   sizeof(__u32), table->capacity, &options);
	if (table->fd < 0)
		return table->fd;
	if (bpf_map_update_elem(records->options.index_tables_fd, &at, &table->fd, BPF_ANY)) {
		int err = -errno;

		close(table->fd);
		return err;
	}
	records->capacity += table->capacity;
	records->n_tables++;
	__atomic_store_n(&records->options.shared->n_index_tables, records->n_tables,
			 __ATOMIC_RELEASE);
	return 0;
}

static void init_pools(struct live_records *records)
{
	const struct live_records_options *options = &records->options;
	struct ap_live *shared = options->shared;

	shared->records.max = options->max_records;
	shared->histograms.max = MAX_HISTOGRAMS;
	live_pool__init(
		&records->records,
		&(struct live_pool_options){
			.chunks_fd = options->records_fd,
			.free_fd = options->free_records_fd,
			.shared = &shared->records,
			.name = "record_chunk",
			.value_bytes = options->sample ? sizeof(struct ap_blocks) : AP_BLOCKS_BYTES,
			.chunk_bits = AP_CHUNK_BITS,
			.ahead = RECORDS_AHEAD,
		});
	live_pool__init(&records->histograms, &(struct live_pool_options){
						      .chunks_fd = options->histograms_fd,
						      .free_fd = options->free_histograms_fd,
						      .shared = &shared->histograms,
						      .name = "histogram_chunk",
						      .value_bytes = sizeof(struct ap_histograms),
						      .chunk_bits = AP_HISTOGRAM_CHUNK_BITS,
						      .ahead = HISTOGRAMS_AHEAD,
					      });
}

int live_records__new(const struct live_records_options *options, struct live_records **out)
{
	struct live_records *records = calloc(1, sizeof(*records));
	int err;

	if (!records)
		return -ENOMEM;
	records->options = *options;
	records->retire_at = RETIRE_EVERY;
	init_pools(records);
	err = live_records__keep_ready(records);
	if (err) {
		live_records__free(records);
		return err;
	}
	*out = records;
	return 0;
}

void live_records__free(struct live_records *records)
{
	if (!records)
		return;
	live_pool__release(&records->records);
	live_pool__release(&records->histograms);
	for (__u32 i = 0; i < records->n_tables; i++)
		close(records->tables[i].fd);
	free(records->notes);
	free(records->counts);
	free(records->candidates);
	free(records);
}

int live_records__keep_ready(struct live_records *records)
{
	__u64 used = live_pool__used(&records->records);
	int err = live_pool__keep_ready(&records->records);

	if (err || !records->options.stacks)
		return err;
	if (used > records->most_used)
		records->most_used = used;
	err = live_pool__keep_ready(&records->histograms);
	if (err || records->is_full ||
	    (records->n_tables && used + RECORDS_AHEAD <= records->capacity / 2))
		return err;
	err = add_table(records);
	records->is_full = err;
	/* On failure calls may be lost, and are counted as such. */
	return records->n_tables ? 0 : err;
}

static int get_note(struct live_records *records, __u32 index, struct note **note)
{
	if (index >= records->options.max_records)
		return -EINVAL;
	if (array__reserve_zeroed(&records->notes, &records->n_notes, (size_t)index + 1,
				  sizeof(*records->notes)))
		return -ENOMEM;
	*note = &records->notes[index];
	return 0;
}

int live_records__number(struct live_records *records, __u32 index, __u32 *number)
{
	struct note *note;
	int err = get_note(records, index, &note);

	if (err)
		return err;
	if (!note->number) {
		if (records->n_numbers == UINT32_MAX ||
		    array__reserve(&records->counts, &records->counts_room,
				   (size_t)records->n_numbers + 1, sizeof(*records->counts)))
			return -ENOMEM;
		records->counts[records->n_numbers++] = 0;
		note->number = records->n_numbers;
	}
	*number = note->number;
	return 0;
}

int live_records__add_discarded(struct live_records *records, __u32 index,
				const struct ap_count *sum)
{
	struct profile_estimate estimate =
		sampling__estimate(&sum->estimate, records->options.sample_unit_shift);
	struct note *note;
	int err = get_note(records, index, &note);

	if (err)
		return err;
	note->discarded += sum->calls;
	note->discarded_bytes = profile__add_up(note->discarded_bytes, sum->size_bytes);
	profile_estimate__add(&note->of_discarded, &estimate);
	return 0;
}

int live_records__add_live(struct live_records *records, __u32 index, __u64 birth_ns)
{
	struct note *note;
	int err = get_note(records, index, &note);

	if (!err && (!note->oldest_ns || birth_ns < note->oldest_ns))
		note->oldest_ns = birth_ns;
	return err;
}

bool live_records__want_to_retire(const struct live_records *records)
{
	return live_pool__used(&records->records) >= records->retire_at;
}

static bool has_ended(const struct live_space *space)
{
	return space->state != SPACE_USED;
}

/* A record that has not changed since the peak has its present blocks in the peak, unless its
 * address space ended before the peak. */
static void find_peak(const struct live_records *records, const struct ap_blocks *record,
		      const struct live_space *space, struct peak_candidate *out)
{
	__u64 generation = records->options.shared->generation;

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

/* Notes the peak share of a record of an ended address space, which counts unless a later peak
 * generation begins. */
static int add_candidate(struct live_records *records, const struct peak_candidate *candidate)
{
	__u64 generation = records->options.shared->generation;

	if (records->candidates_generation != generation) {
		records->candidates_generation = generation;
		records->n_candidates = 0;
	}
	if (!candidate->peak && !candidate->peak_bytes)
		return 0;
	if (array__reserve(&records->candidates, &records->candidates_room,
			   records->n_candidates + 1, sizeof(*records->candidates)))
		return -ENOMEM;
	records->candidates[records->n_candidates++] = *candidate;
	return 0;
}

static int add_candidates(const struct live_records *records, struct profile *profile)
{
	int err = 0;

	if (records->candidates_generation != records->options.shared->generation)
		return 0;
	for (size_t i = 0; i < records->n_candidates && !err; i++) {
		const struct peak_candidate *candidate = &records->candidates[i];

		err = profile__add_blocks(profile, &(struct profile_blocks){
							   .count = candidate->count,
							   .peak = candidate->peak,
							   .peak_bytes = candidate->peak_bytes,
						   });
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

static void read_histograms(const struct live_records *records, const struct ap_blocks *record,
			    struct profile_blocks *blocks)
{
	const struct ap_histograms *more =
		record->histograms ? live_pool__get(&records->histograms, record->histograms - 1)
				   : NULL;

	for (int i = 0; i < AP_SLOTS; i++)
		add_bucket(blocks, record->tags >> 8 * i & 0xff, record->slots[i]);
	for (__u32 i = 0; more && i < 2 * AP_BUCKETS; i++)
		add_bucket(blocks, i + 1, more->buckets[i]);
}

static void read_blocks(const struct live_records *records, const struct ap_blocks *record,
			const struct note *note, struct profile_blocks *blocks)
{
	__u64 start_ns = records->options.shared->start_ns;

	blocks->failed = record->failed;
	blocks->allocations = record->allocations;
	blocks->size_bytes = record->size_bytes;
	blocks->frees = record->frees;
	blocks->freed_bytes = record->freed_bytes;
	blocks->discarded = note->discarded;
	blocks->discarded_bytes = note->discarded_bytes;
	blocks->temporary = record->temporary;
	blocks->temporary_bytes = record->temporary_bytes;
	if (note->oldest_ns > start_ns)
		blocks->oldest_ns = note->oldest_ns - start_ns;
	read_histograms(records, record, blocks);
}

static int add_samples(const struct live_records *records, const struct ap_blocks *record,
		       const struct note *note, struct profile *profile, __u32 count)
{
	__u32 shift = records->options.sample_unit_shift;
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

/* Adds one record to the profile. */
static int collect_record(struct live_records *records, const struct ap_count_key *key,
			  const struct ap_blocks *record, const struct note *note,
			  const struct live_space *space, struct collector *collector, bool retires)
{
	struct profile *profile = collector__profile(collector);
	struct profile_blocks blocks = { 0 };
	struct peak_candidate peak = { 0 };
	struct ap_count sum = { .calls = record->calls, .size_bytes = record->asked_bytes };
	int err;

	if (records->options.sample)
		sum.estimate = record->of_calls;
	err = collector__add_count(collector, key, &sum, &blocks.count);
	if (err || !blocks.count)
		return err;
	if (note->number)
		records->counts[note->number - 1] = blocks.count;
	read_blocks(records, record, note, &blocks);
	find_peak(records, record, space, &peak);
	peak.count = blocks.count;
	if (retires) {
		err = add_candidate(records, &peak);
	} else {
		blocks.peak = peak.peak;
		blocks.peak_bytes = peak.peak_bytes;
	}
	if (!err)
		err = profile__add_blocks(profile, &blocks);
	if (!err && records->options.sample)
		err = add_samples(records, record, note, profile, blocks.count);
	return err;
}

/* Frees the record, which no program can reach any more, for another key. */
static int recycle(struct live_records *records, int table_fd, const struct ap_count_key *key,
		   __u32 index)
{
	const struct ap_blocks *record = live_pool__get(&records->records, index);
	__u32 histograms = record->histograms;
	int err;

	if (bpf_map_delete_elem(table_fd, key))
		return 0;
	if (index < records->n_notes)
		records->notes[index] = (struct note){ 0 };
	err = live_pool__give_back(&records->records, index);
	return err || !histograms ? err
				  : live_pool__give_back(&records->histograms, histograms - 1);
}

struct collecting {
	struct live_records *records;
	const struct live_spaces *spaces;
	struct collector *collector;
	int table_fd;
	bool retires; /* only records of ended address spaces */
};

static int collect_key(void *context, const void *key, const void *value)
{
	const struct collecting *collecting = context;
	struct live_records *records = collecting->records;
	__u32 image = ((const struct ap_count_key *)key)->process;
	const struct live_space *space = live_spaces__of_image(collecting->spaces, image);
	static const struct note none;
	__u32 index = *(const __u32 *)value;
	const struct ap_blocks *record;
	int err = 0;

	if (collecting->retires && !has_ended(space))
		return 0;
	record = live_pool__get(&records->records, index);
	if (!record || index >= records->options.max_records)
		return 0;
	/* Else the record was added, but its call was lost. */
	if (record->calls)
		err = collect_record(records, key, record,
				     index < records->n_notes ? &records->notes[index] : &none,
				     space, collecting->collector, collecting->retires);
	if (!err && collecting->retires)
		err = recycle(records, collecting->table_fd, key, index);
	return err;
}

static int collect(struct collecting *collecting)
{
	struct live_records *records = collecting->records;
	int err = 0;

	for (__u32 i = 0; i < records->n_tables && !err; i++) {
		collecting->table_fd = records->tables[i].fd;
		err = map_batch__each(collecting->table_fd, sizeof(struct ap_count_key),
				      sizeof(__u32), false, collect_key, collecting);
	}
	return err;
}

int live_records__retire(struct live_records *records, const struct live_spaces *spaces,
			 struct collector *collector)
{
	struct collecting collecting = { records, spaces, collector, -1, true };
	int err = collect(&collecting);
	__u64 used = live_pool__used(&records->records);

	profile__close_counts(collector__profile(collector));
	records->retire_at = used + (used / 2 > RETIRE_EVERY ? used / 2 : RETIRE_EVERY);
	return err;
}

int live_records__collect(struct live_records *records, const struct live_spaces *spaces,
			  struct collector *collector)
{
	struct collecting collecting = { records, spaces, collector, -1, false };
	int err = collect(&collecting);

	return err ? err : add_candidates(records, collector__profile(collector));
}

__u32 live_records__count(const struct live_records *records, __u32 number)
{
	return number && number <= records->n_numbers ? records->counts[number - 1] : 0;
}

int live_records__function(const struct live_records *records, enum ap_function function,
			   struct ap_blocks *out)
{
	const void *record = live_pool__get(&records->records, function);

	if (!record)
		return -ENOENT;
	*out = (struct ap_blocks){ 0 };
	memcpy(out, record, records->records.options.value_bytes);
	return 0;
}

__u64 live_records__most_used(const struct live_records *records)
{
	return records->most_used;
}

__u64 live_records__bytes(const struct live_records *records)
{
	return live_pool__bytes(&records->records) + live_pool__bytes(&records->histograms) +
	       records->most_used * ENTRY_BYTES + records->capacity * BUCKET_BYTES;
}
