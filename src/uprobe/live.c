// SPDX-License-Identifier: GPL-3.0-or-later
#include "live.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf_maps.h"
#include "clock.h"
#include "collector.h"
#include "live_collector.h"
#include "live_records.h"
#include "profile.h"
#include "reach.h"
#include "record_abi.h"

/* Capacity of the first table; each further one has four times as many. */
#define FIRST_TABLE 262144
/* Kernel memory of a table's entry: key, block and 48 bytes of overhead are 104, and a link of 8
 * since Linux 6.1; the allocator's size class is 128. */
#define ENTRY_BYTES  128
#define BUCKET_BYTES 16
/* The number of buckets is a power of two, so there are up to two per block. */
#define BLOCK_BYTES (ENTRY_BYTES + 2 * BUCKET_BYTES)
struct live {
	struct live_options options;
	__u32 n_tables;
	struct table {
		int fd;
		__u32 capacity;
	} tables[AP_LIVE_TABLES];
	bool is_full; /* the kernel refused another table */
	__u64 capacity;
	__u64 retire_at;   /* blocks in the tables at which those of ended processes are removed */
	__u64 max_entries; /* maximum observed */
	struct live_records *records;
	struct live_collector *collector;
	int current; /* index of the lifetimes map in use */
	bool wants_drain;
	__u64 unfinished;
};

static __u64 not_negative(__s64 value)
{
	return value > 0 ? value : 0;
}

static __u64 entries(const struct live *live)
{
	return not_negative(__atomic_load_n(&live->options.shared->entries, __ATOMIC_RELAXED));
}

/* Sets the number of blocks at which those of ended processes are removed: halfway to the next
 * table, but not before there are an eighth more blocks than now, since user space has to read all
 * blocks for it, which takes long. */
static void set_retire_at(struct live *live)
{
	__u64 now = entries(live), grow_at = live->options.shared->grow_at;
	__u64 more = grow_at > now ? (grow_at - now) / 2 : 0;

	live->retire_at = now + (more > now / 8 ? more : now / 8);
}

/*
 * Adds a table, four times as large as the last one, within max_blocks. n_tables counts it
 * before it is in its slot, and programs pass over an empty slot: the update of the slot returns
 * after a grace period, in which the other tables may become full.
 */
static int add_table(struct live *live)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	__u64 left = live->options.max_blocks - live->capacity;
	struct table *table = &live->tables[live->n_tables];
	__u64 capacity = FIRST_TABLE;
	__u32 at = live->n_tables;
	int err;

	if (live->n_tables == AP_LIVE_TABLES || !left)
		return 0;
	if (at)
		capacity = 4ULL * live->tables[at - 1].capacity;
	if (capacity > left)
		capacity = left;
	if (capacity > 1U << 30)
		capacity = 1U << 30;
	table->fd = bpf_map_create(BPF_MAP_TYPE_HASH, "live_table", sizeof(struct ap_block_key),
				   sizeof(struct ap_block), capacity, &options);
	if (table->fd < 0)
		return table->fd;
	__atomic_store_n(&live->options.shared->n_tables, at + 1, __ATOMIC_RELEASE);
	err = slots__set(live->options.slots, live->options.tables_fd, at, &table->fd, 1);
	if (err) {
		__atomic_store_n(&live->options.shared->n_tables, at, __ATOMIC_RELEASE);
		close(table->fd);
		return err;
	}
	table->capacity = capacity;
	__atomic_store_n(&live->options.shared->grow_at, live->capacity + (capacity + 1) / 2,
			 __ATOMIC_RELAXED);
	live->capacity += capacity;
	live->n_tables++;
	set_retire_at(live);
	return 0;
}

static bool tables_run_full(const struct live *live)
{
	return entries(live) >= live->options.shared->grow_at;
}

/* Adds a table if the programs need one. If that fails, they may find no room for blocks, and
 * count these as untracked. */
static void keep_room(struct live *live)
{
	if (!live->is_full && tables_run_full(live) && !live->options.shared->stopped)
		live->is_full = add_table(live);
}

int live__new(const struct live_options *options, struct live **out)
{
	struct live_collector_options collector_options = {
		.max_records = options->records.max_records,
		.sample = options->records.sample,
		.sample_unit_shift = options->sample_unit_shift,
		.stacks = options->records.stacks,
		.resident = options->resident,
		.reach = options->reach,
		.interval_ns = options->interval_ns,
		.epoch_shift = &options->shared->epoch_shift,
		.generation = &options->shared->generation,
		.target = options->target,
	};
	struct live *live = calloc(1, sizeof(*live));
	int err = -ENOMEM;

	if (!live)
		return -ENOMEM;
	live->options = *options;
	if (!live->options.max_blocks)
		live->options.max_blocks = options->most_bytes / BLOCK_BYTES;
	options->shared->epoch_shift = AP_FIRST_EPOCH_SHIFT;
	live->collector = live_collector__new(&collector_options);
	if (live->collector)
		err = add_table(live);
	if (!err)
		err = live_records__new(&options->records, &live->records);
	if (err) {
		live__free(live);
		return err;
	}
	*out = live;
	return 0;
}

void live__free(struct live *live)
{
	if (!live)
		return;
	for (__u32 i = 0; i < live->n_tables; i++)
		close(live->tables[i].fd);
	live_records__free(live->records);
	live_collector__free(live->collector);
	free(live);
}

int live__handle_record(struct live *live, const void *record, size_t size)
{
	const struct ap_lifetime_record *lifetime = record;

	if (size < sizeof(__u32))
		return 0;
	switch (*(const __u32 *)record) {
	case AP_RECORD_PROCESS:
	case AP_RECORD_SPACE:
	case AP_RECORD_MAPPING:
		return live_collector__handle_record(live->collector, record, size);
	case AP_RECORD_LIFETIME:
		if (size < sizeof(*lifetime))
			return 0;
		return live_collector__add_lifetime(live->collector, &lifetime->key,
						    lifetime->weight,
						    lifetime->weight * lifetime->size_bytes);
	case AP_RECORD_DRAIN:
		live->wants_drain = true;
		return 0;
	}
	return 0;
}

static int absorb_lifetime(void *context, const void *key, const void *value)
{
	const struct ap_lifetime *sums = value;

	return live_collector__add_lifetime(context, key, sums->blocks, sums->size_bytes);
}

static int read_lifetimes(struct live *live, int fd)
{
	return map_batch__each(fd, sizeof(struct ap_lifetime_key), sizeof(struct ap_lifetime), true,
			       absorb_lifetime, live->collector);
}

/* Like count_maps__begin_drain(): the update waits until no program uses the old map. */
static int drain(struct live *live)
{
	int last = live->current, next = !last;
	__u32 zero = 0;

	if (bpf_map_update_elem(live->options.lifetimes_fd, &zero,
				&live->options.lifetimes_fds[next], BPF_ANY))
		return -errno;
	__atomic_store_n(live->options.lifetimes_inserted, 0, __ATOMIC_RELAXED);
	live->current = next;
	live->wants_drain = false;
	return read_lifetimes(live, live->options.lifetimes_fds[last]);
}

struct absorbing {
	struct live *live;
	int fd;
	bool purge;
};

static int absorb_entry(void *context, const void *key, const void *value)
{
	const struct absorbing *absorbing = context;
	struct live *live = absorbing->live;
	const struct ap_block_key *at = key;
	int err;

	/* Only the recorder may add a table. The process of a copy would add one to a list of its own. */
	if (absorbing->purge)
		keep_room(live);
	if (absorbing->purge && live_collector__is_used(live->collector, at->space))
		return 0;
	err = live_collector__add_block(live->collector, at, value);
	if (!err && absorbing->purge && !bpf_map_delete_elem(absorbing->fd, key))
		__atomic_fetch_sub(&live->options.shared->entries, 1, __ATOMIC_RELAXED);
	return err;
}

/* Accounts the blocks of a table: with @purge those of ended address spaces, which no program can
 * reach any more, and deletes them; else all. */
static int read_table(struct live *live, int fd, bool purge)
{
	struct absorbing absorbing = { .live = live, .fd = fd, .purge = purge };

	return map_batch__each(fd, sizeof(struct ap_block_key), sizeof(struct ap_block), false,
			       absorb_entry, &absorbing);
}

static int purge(struct live *live)
{
	int err = 0;

	for (__u32 i = 0; i < live->n_tables && !err; i++)
		err = read_table(live, live->tables[i].fd, true);
	return err;
}

/*
 * Moves records, blocks and lifetimes of ended address spaces into the profile. Their processes
 * sent their stacks before the record of their exit, so these have been read, but snapshots may
 * still have to be unwound.
 */
static int retire(struct live *live, struct collector *collector)
{
	int err = drain(live);

	if (!err)
		err = purge(live);
	while (!err && collector__has_dumps(collector)) {
		keep_room(live);
		err = collector__settle(collector, SIZE_MAX);
	}
	if (!err)
		err = live_records__retire(live->records, live->collector, collector);
	set_retire_at(live);
	return err ? err : live_collector__retire(live->collector, collector);
}

static void note_entries(struct live *live)
{
	__u64 now = entries(live);

	if (now > live->max_entries)
		live->max_entries = now;
}

/* Called after keep_room(): if the tables run full all the same, no table can be added. */
static bool wants_to_retire(const struct live *live)
{
	return entries(live) >= live->retire_at || tables_run_full(live) ||
	       live_records__want_to_retire(live->records);
}

/* The record that requests it may have found the ring buffer full, so the number is checked, too. */
static bool lifetimes_run_full(const struct live *live)
{
	return __atomic_load_n(live->options.lifetimes_inserted, __ATOMIC_RELAXED) >=
	       live->options.drain_at;
}

static __u64 stat_sum(const struct live *live, __u32 which)
{
	__u64 sum;

	counters__sum(live->options.counters, live->options.stats_fd, &which, &sum, 1);
	return sum;
}

/* Adds a sample to the time line. */
static int sample(struct live *live)
{
	const struct ap_live *shared = live->options.shared;
	__u64 begin_ns = clock__now_ns();
	struct timeline_sample sample = {
		.live = not_negative(shared->blocks),
		.live_bytes = not_negative(shared->size_bytes),
		.allocations = stat_sum(live, AP_STAT_ALLOCATIONS),
		.size_bytes = stat_sum(live, AP_STAT_ALLOCATED_BYTES),
	};

	/* When the last process has ended, the sample shows what that process left live. */
	if (live_collector__is_deserted(live->collector)) {
		sample.live = not_negative(shared->left_blocks);
		sample.live_bytes = not_negative(shared->left_bytes);
	}
	return live_collector__add_timeline_sample(live->collector, &sample, begin_ns);
}

void live__start(struct live *live, __u64 now_ns, bool is_new)
{
	__atomic_store_n(&live->options.shared->start_ns, now_ns, __ATOMIC_RELAXED);
	live_collector__start(live->collector, now_ns, is_new);
}

int live__attend(struct live *live, struct collector *collector)
{
	int err = live_records__keep_ready(live->records);

	note_entries(live);
	keep_room(live);
	if (!err && live_collector__may_retire(live->collector) && wants_to_retire(live))
		err = retire(live, collector);
	if (!err && (live->wants_drain || lifetimes_run_full(live)))
		err = drain(live);
	if (!err && live->options.records.stacks && !live_collector__has_ended(live->collector) &&
	    !live_collector__due_ns(live->collector))
		err = sample(live);
	return err;
}

int live__timeout_ms(const struct live *live, int most)
{
	__u64 ms = (live_collector__due_ns(live->collector) + NS_PER_MS - 1) / NS_PER_MS;

	if (!live->options.records.stacks)
		return most;
	return ms < (__u64)most ? (int)ms : most;
}

int live__stop(struct live *live, __u64 end_ns)
{
	struct ap_live *shared = live->options.shared;

	__atomic_store_n(&shared->stopped, 1, __ATOMIC_RELEASE);
	/* What is live now may be the peak: a new generation begins, as it does when a process
	 * ends. */
	if (shared->size_bytes > 0 && (__u64)shared->size_bytes > shared->mark_bytes)
		shared->generation++;
	live_collector__end(live->collector, end_ns);
	note_entries(live);
	return live->options.records.stacks ? sample(live) : 0;
}

static int list_block(void *context, const void *key, const void *value)
{
	struct reach_process *out = context;
	const struct ap_block_key *at = key;
	const struct ap_block *block = value;

	return at->space == out->space
		       ? reach_blocks__add(&out->blocks, at->address, block->size_bytes)
		       : 0;
}

/* Lists the blocks that reallocs have taken out of the tables, and that are still there. */
static int list_pending(void *context, const void *key, const void *value)
{
	const struct ap_thread *thread = value;
	int err = 0;

	for (__u32 i = 0; i < thread->n_pending && i < AP_MAX_PENDING && !err; i++) {
		const struct ap_pending *pending = &thread->pending[i];

		if (pending->has_old)
			err = list_block(context,
					 &(struct ap_block_key){ .address = pending->pointer,
								 .space = pending->space },
					 &pending->old);
	}
	return err;
}

int live__read_blocks(const struct live *live, pid_t pid, struct reach_process *out)
{
	int err = 0;

	out->owner = live->collector;
	out->space = live_collector__space(live->collector, pid);
	if (!out->space)
		return -ESRCH;
	for (__u32 i = 0; i < live->n_tables && !err; i++)
		err = map_batch__each(live->tables[i].fd, sizeof(struct ap_block_key),
				      sizeof(struct ap_block), false, list_block, out);
	if (!err)
		err = map_batch__each(live->options.threads_fd, sizeof(__u64),
				      sizeof(struct ap_thread), false, list_pending, out);
	return err;
}

struct thread_reading {
	struct live *live;
	int err;
};

static int read_thread(void *context, const void *key, const void *value)
{
	struct thread_reading *reading = context;
	const struct ap_thread *thread = value;
	struct live *live = reading->live;

	for (__u32 i = 0; i < thread->n_pending && i < AP_MAX_PENDING && !reading->err; i++) {
		const struct ap_pending *pending = &thread->pending[i];

		if (pending->record != AP_NO_RECORD) {
			live->unfinished += pending->weight;
			if (live->options.on_unfinished)
				live->options.on_unfinished(live->options.context, pending,
							    *(const __u64 *)key);
		}
		if (pending->has_old)
			reading->err = live_collector__add_block(
				live->collector,
				&(struct ap_block_key){ .address = pending->pointer,
							.space = pending->space },
				&pending->old);
	}
	return reading->err;
}

/* Reads calls that have not returned, and the old blocks that their reallocs took out of the
 * tables. Reads by batches, which follow the map's buckets: going from key to key would begin anew
 * whenever a thread of the target ends. */
static int read_threads(struct live *live)
{
	struct thread_reading reading = { live, 0 };

	if (map_batch__each(live->options.threads_fd, sizeof(__u64), sizeof(struct ap_thread),
			    false, read_thread, &reading) &&
	    !reading.err)
		live->options.counters->unread++;
	return reading.err;
}

/* Collects everything but the lifetimes in the programs' maps. */
static int collect_rest(struct live *live, struct collector *collector)
{
	int err = read_threads(live);

	for (__u32 i = 0; i < live->n_tables && !err; i++)
		err = read_table(live, live->tables[i].fd, false);
	if (err || !live->options.records.stacks)
		return err;
	err = live_records__collect(live->records, live->collector, collector);
	return err ? err : live_collector__finish(live->collector, collector);
}

int live__collect(struct live *live, struct collector *collector)
{
	int err = 0;

	for (int i = 0; i < 2 && !err && live->options.records.stacks; i++)
		err = read_lifetimes(live, live->options.lifetimes_fds[i]);
	return err ? err : collect_rest(live, collector);
}

int live__cut(struct live *live)
{
	return drain(live);
}

int live__collect_snapshot(struct live *live, struct collector *collector, __u64 end_ns)
{
	int err;

	live_collector__end(live->collector, end_ns);
	err = sample(live);
	return err ? err : collect_rest(live, collector);
}

__u64 live__activity(const struct live *live)
{
	const struct ap_live *shared = live->options.shared;
	__u64 sum = __atomic_load_n(&shared->entries, __ATOMIC_RELAXED) +
		    __atomic_load_n(&shared->records.n, __ATOMIC_RELAXED) +
		    __atomic_load_n(&shared->n_dumps, __ATOMIC_RELAXED) +
		    __atomic_load_n(&shared->last_space, __ATOMIC_RELAXED);

	for (__u32 i = 0; i < AP_STATS; i++)
		sum += stat_sum(live, i);
	return sum;
}

__u64 live__unfinished(const struct live *live)
{
	return live->unfinished;
}

__u64 live__implausible(const struct live *live)
{
	return live_collector__implausible(live->collector);
}

__u64 live__discarded(const struct live *live, __u64 *size_bytes)
{
	return live_collector__discarded(live->collector, size_bytes);
}

void live__mappings(const struct live *live, struct mapping_totals *totals)
{
	live_collector__mappings(live->collector, totals);
}

void live__epochs(const struct live *live, struct live_totals *out)
{
	live_collector__epochs(live->collector, out);
}

void live__memory(const struct live *live, struct live_memory *out)
{
	__u64 buckets = 0;

	for (__u32 i = 0; i < live->n_tables; i++) {
		__u64 n = 1;

		while (n < live->tables[i].capacity)
			n *= 2;
		buckets += n;
	}
	out->entries = live->max_entries;
	out->block_bytes = BUCKET_BYTES * buckets + ENTRY_BYTES * out->entries;
	out->record_bytes = live_records__bytes(live->records);
	out->max_blocks = live->options.max_blocks;
	out->records = live_records__most_used(live->records);
	out->max_records = live->options.records.max_records;
}
