// SPDX-License-Identifier: GPL-3.0-or-later
#include "live_records.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "array.h"
#include "bpf_maps.h"
#include "cleanup.h"
#include "live_collector.h"

/* How many values are kept ready at most; otherwise half of those in use. */
#define MOST_AHEAD 262144

/* options->shared->max must have been set. Makes no values ready yet. */
static void live_pool__init(struct live_pool *pool, const struct live_pool_options *options)
{
	*pool = (struct live_pool){ .options = *options };
}

static size_t value_stride(const struct live_pool *pool)
{
	return (pool->options.value_bytes + 7) & ~(size_t)7;
}

static size_t chunk_bytes(const struct live_pool *pool)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return ((value_stride(pool) << pool->options.chunk_bits) + page - 1) & ~(page - 1);
}

static void live_pool__release(struct live_pool *pool)
{
	for (__u32 i = 0; i < pool->n_chunks; i++) {
		munmap(pool->chunks[i].values, chunk_bytes(pool));
		close(pool->chunks[i].fd);
	}
	free(pool->chunks);
	free(pool->free);
	*pool = (struct live_pool){ 0 };
}

static int publish_chunks(struct live_pool *pool, __u32 first, __u32 n)
{
	_cleanup_(free_ptr) int *fds = calloc(n, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	for (__u32 i = 0; i < n; i++)
		fds[i] = pool->chunks[first + i].fd;
	return slots__set(pool->options.slots, pool->options.chunks_fd, first, fds, n);
}

static int make_chunk(const struct live_pool *pool, struct live_pool_chunk *chunk)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, pool->options.name, sizeof(__u32),
			       pool->options.value_bytes, 1U << pool->options.chunk_bits, &options);
	void *values;

	if (fd < 0)
		return fd;
	values = mmap(NULL, chunk_bytes(pool), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (values == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	*chunk = (struct live_pool_chunk){ fd, values };
	return 0;
}

static int add_chunks(struct live_pool *pool, __u32 wanted)
{
	struct ap_pool *shared = pool->options.shared;
	struct live_pool_chunk *chunks;
	__u32 first = pool->n_chunks;
	__u64 ready;
	int err = 0;

	chunks = reallocarray(pool->chunks, wanted, sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	pool->chunks = chunks;
	while (pool->n_chunks < wanted && !err) {
		err = make_chunk(pool, &chunks[pool->n_chunks]);
		if (!err)
			pool->n_chunks++;
	}
	if (pool->n_chunks == first)
		return err;
	err = publish_chunks(pool, first, pool->n_chunks - first);
	if (err)
		return err;
	ready = (__u64)pool->n_chunks << pool->options.chunk_bits;
	__atomic_store_n(&shared->ready, ready < shared->max ? ready : shared->max,
			 __ATOMIC_RELEASE);
	return 0;
}

/* Returns the indexes to the programs for which their queue had no room before. */
static void refill_queue(struct live_pool *pool)
{
	while (pool->n_free) {
		if (bpf_map_update_elem(pool->options.free_fd, NULL, &pool->free[pool->n_free - 1],
					BPF_ANY))
			return;
		__atomic_fetch_add(&pool->options.shared->n_free, 1, __ATOMIC_RELEASE);
		pool->n_free--;
	}
}

/* Adds arrays so that programs find room. If the kernel refuses more, the pool keeps its size.
 * Fails with -ENOMEM, or an errno of bpf(2), if it has no array yet. */
static int live_pool__keep_ready(struct live_pool *pool)
{
	__u32 used = __atomic_load_n(&pool->options.shared->n, __ATOMIC_RELAXED);
	__u32 ahead = pool->options.ahead, bits = pool->options.chunk_bits;
	__u64 wanted;
	int err;

	refill_queue(pool);
	/* An array is added for many records at once, since each addition costs a grace period. */
	if (pool->n_chunks && used + ahead / 2 < (__u64)pool->n_chunks << bits)
		return 0;
	if (used / 2 > ahead)
		ahead = used / 2 < MOST_AHEAD ? used / 2 : MOST_AHEAD;
	wanted = (__u64)used + ahead;
	if (wanted > pool->options.shared->max)
		wanted = pool->options.shared->max;
	wanted = (wanted + (1U << bits) - 1) >> bits;
	if (wanted <= pool->n_chunks || pool->is_full)
		return 0;
	err = add_chunks(pool, wanted);
	if (!err || !pool->n_chunks)
		return err;
	/* No hit waits for further values from now on. */
	pool->is_full = true;
	__atomic_store_n(&pool->options.shared->max, pool->options.shared->ready, __ATOMIC_RELAXED);
	return 0;
}

/* Returns the value of @index, which programs may change concurrently; NULL if there is none. */
static void *live_pool__get(const struct live_pool *pool, __u32 index)
{
	__u32 bits = pool->options.chunk_bits, at = index & ((1U << bits) - 1);

	if (index >> bits >= pool->n_chunks)
		return NULL;
	return pool->chunks[index >> bits].values + at * value_stride(pool);
}

/* Zeroes the value of @index, which no program can reach, and returns the index to the programs.
 * Fails with -ENOMEM. */
static int live_pool__give_back(struct live_pool *pool, __u32 index)
{
	void *value = live_pool__get(pool, index);

	if (!value)
		return 0;
	memset(value, 0, pool->options.value_bytes);
	if (array__reserve(&pool->free, &pool->free_room, pool->n_free + 1, sizeof(*pool->free)))
		return -ENOMEM;
	pool->free[pool->n_free++] = index;
	refill_queue(pool);
	return 0;
}

/* Returns the number of values in use, which programs have taken and not given back. */
static __u64 live_pool__used(const struct live_pool *pool)
{
	__u64 n = __atomic_load_n(&pool->options.shared->n, __ATOMIC_RELAXED);
	__s32 queued = __atomic_load_n(&pool->options.shared->n_free, __ATOMIC_RELAXED);
	__u64 unused = pool->n_free + (queued > 0 ? queued : 0);

	return n > unused ? n - unused : 0;
}

/* Returns how many bytes of kernel memory the arrays occupy. */
static __u64 live_pool__bytes(const struct live_pool *pool)
{
	return (__u64)pool->n_chunks * chunk_bytes(pool);
}

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
	__u64 retire_at; /* number of records in use at which to retire */
	__u64 most_used; /* maximum number in use, as observed */
};

/* Adds a table, four times as large as the last one. */
static int add_table(struct live_records *records)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	struct table *table = &records->tables[records->n_tables];
	__u32 at = records->n_tables;
	int err;

	if (at == AP_INDEX_TABLES)
		return 0;
	table->capacity = at ? 4 * records->tables[at - 1].capacity : FIRST_TABLE;
	table->fd = bpf_map_create(BPF_MAP_TYPE_HASH, "index_table", sizeof(struct ap_count_key),
				   sizeof(__u32), table->capacity, &options);
	if (table->fd < 0)
		return table->fd;
	err = slots__set(records->options.slots, records->options.index_tables_fd, at, &table->fd,
			 1);
	if (err) {
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
			.slots = options->slots,
			.name = "record_chunk",
			.value_bytes = options->sample ? sizeof(struct ap_blocks) : AP_BLOCKS_BYTES,
			.chunk_bits = AP_CHUNK_BITS,
			.ahead = RECORDS_AHEAD,
		});
	live_pool__init(&records->histograms, &(struct live_pool_options){
						      .chunks_fd = options->histograms_fd,
						      .free_fd = options->free_histograms_fd,
						      .shared = &shared->histograms,
						      .slots = options->slots,
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
	/* Without further records calls may be lost, which are counted as such. */
	return records->n_tables ? 0 : err;
}

bool live_records__want_to_retire(const struct live_records *records)
{
	return live_pool__used(&records->records) >= records->retire_at;
}

/* Frees the record, which no program can reach any more, for another key. */
static int recycle(struct live_records *records, struct live_collector *live, int table_fd,
		   const struct ap_count_key *key, __u32 index)
{
	const struct ap_blocks *record = live_pool__get(&records->records, index);
	__u32 histograms = record->histograms;
	int err;

	if (bpf_map_delete_elem(table_fd, key))
		return 0;
	live_collector__release_index(live, index);
	err = live_pool__give_back(&records->records, index);
	return err || !histograms ? err
				  : live_pool__give_back(&records->histograms, histograms - 1);
}

struct collecting {
	struct live_records *records;
	struct live_collector *live;
	struct collector *collector;
	int table_fd;
	bool retires; /* only records of ended address spaces */
};

static int collect_key(void *context, const void *key, const void *value)
{
	const struct collecting *collecting = context;
	struct live_records *records = collecting->records;
	const struct ap_histograms *histograms;
	__u32 index = *(const __u32 *)value;
	const struct ap_blocks *record;
	int err = 0;

	if (collecting->retires &&
	    live_collector__is_program_used(collecting->live,
					    ((const struct ap_count_key *)key)->process))
		return 0;
	record = live_pool__get(&records->records, index);
	if (!record || index >= records->options.max_records)
		return 0;
	histograms = record->histograms
			     ? live_pool__get(&records->histograms, record->histograms - 1)
			     : NULL;
	/* A record without calls was added by a program that then lost its call. */
	if (record->calls)
		err = live_collector__add_record(collecting->live, collecting->collector, key,
						 index, record, histograms, collecting->retires);
	if (!err && collecting->retires)
		err = recycle(records, collecting->live, collecting->table_fd, key, index);
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

int live_records__retire(struct live_records *records, struct live_collector *live,
			 struct collector *collector)
{
	struct collecting collecting = { records, live, collector, -1, true };
	int err = collect(&collecting);
	__u64 used = live_pool__used(&records->records);

	records->retire_at = used + (used / 2 > RETIRE_EVERY ? used / 2 : RETIRE_EVERY);
	return err;
}

int live_records__collect(struct live_records *records, struct live_collector *live,
			  struct collector *collector)
{
	struct collecting collecting = { records, live, collector, -1, false };

	return collect(&collecting);
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
