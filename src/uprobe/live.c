// SPDX-License-Identifier: GPL-3.0-or-later
#include "live.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "counters.h"
#include "lifetimes.h"
#include "live_records.h"
#include "live_spaces.h"
#include "map_batch.h"
#include "profile.h"
#include "record_abi.h"
#include "sampling.h"
#include "timeline.h"

/* Capacity of the first table; each further one has four times as many. */
#define FIRST_TABLE 65536
/* Kernel memory of a table's entry: key, block and 48 bytes of overhead are 96, and a link of 8
 * since Linux 6.1; the allocator's size class is 128. */
#define ENTRY_BYTES  128
#define BUCKET_BYTES 16
/* The number of buckets is a power of two, so there are up to two per block. */
#define BLOCK_BYTES (ENTRY_BYTES + 2 * BUCKET_BYTES)
/* At most 1/SAMPLE_SHARE of the time is spent on reading the processes' memory sizes; with many
 * processes the first moments are further apart. */
#define SAMPLE_SHARE 50

struct live {
	struct live_options options;
	__u32 n_tables;
	struct table {
		int fd;
		__u32 capacity;
	} tables[AP_LIVE_TABLES];
	bool is_full; /* the kernel refused another table */
	__u64 capacity;
	__u64 max_entries; /* maximum observed */
	struct live_records *records;
	struct live_spaces spaces;
	bool has_ended_spaces; /* with blocks still in the tables, and records not retired */
	__u64 discarded, discarded_bytes;
	struct lifetimes *lifetimes; /* of records that are not in the profile yet */
	__u32 moved_shift;	     /* epoch shift of the lifetimes in the profile */
	int current;		     /* index of the lifetimes map in use */
	bool wants_drain;
	struct timeline timeline;
	__u64 end_ns; /* 0 while the recording runs */
	__u64 unfinished;
};

static __u64 default_max_blocks(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		return 1 << 24;
	return (__u64)info.totalram * info.mem_unit / 4 / BLOCK_BYTES;
}

/* Adds a table, four times as large as the last one, within max_blocks. */
static int add_table(struct live *live)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	__u64 left = live->options.max_blocks - live->capacity;
	struct table *table = &live->tables[live->n_tables];
	__u64 capacity = FIRST_TABLE;
	__u32 at = live->n_tables;

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
	if (bpf_map_update_elem(live->options.tables_fd, &at, &table->fd, BPF_ANY)) {
		int err = -errno;

		close(table->fd);
		return err;
	}
	table->capacity = capacity;
	__atomic_store_n(&live->options.shared->grow_at, live->capacity + (capacity + 1) / 2,
			 __ATOMIC_RELAXED);
	live->capacity += capacity;
	live->n_tables++;
	__atomic_store_n(&live->options.shared->n_tables, live->n_tables, __ATOMIC_RELEASE);
	return 0;
}

int live__new(const struct live_options *options, struct live **out)
{
	struct live *live = calloc(1, sizeof(*live));
	int err = -ENOMEM;

	if (!live)
		return -ENOMEM;
	live->options = *options;
	if (!live->options.max_blocks)
		live->options.max_blocks = default_max_blocks();
	live->timeline.interval_ns = options->interval_ns;
	options->shared->epoch_shift = AP_FIRST_EPOCH_SHIFT;
	live->moved_shift = AP_FIRST_EPOCH_SHIFT;
	live->lifetimes = lifetimes__new();
	if (live->lifetimes)
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
	live_spaces__release(&live->spaces);
	lifetimes__free(live->lifetimes);
	timeline__release(&live->timeline);
	free(live);
}

/* Lifetimes are stored by the record's number, since its index is reused. */
static int add_lifetime(struct live *live, const struct ap_lifetime_key *key, __u64 blocks,
			__u64 size_bytes)
{
	struct ap_lifetime_key numbered = *key;
	int err = live_records__number(live->records, key->record, &numbered.record);

	return err ? err : lifetimes__add(live->lifetimes, &numbered, blocks, size_bytes);
}

int live__handle_record(struct live *live, const void *record, size_t size)
{
	const struct ap_lifetime_record *lifetime = record;

	if (size < sizeof(__u32))
		return 0;
	switch (*(const __u32 *)record) {
	case AP_RECORD_PROCESS:
		if (size < sizeof(struct ap_process_record))
			return 0;
		return live_spaces__handle(&live->spaces, record, &live->has_ended_spaces);
	case AP_RECORD_LIFETIME:
		if (size < sizeof(*lifetime))
			return 0;
		return add_lifetime(live, &lifetime->key, lifetime->weight,
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

	return add_lifetime(context, key, sums->blocks, sums->size_bytes);
}

static int read_lifetimes(struct live *live, int fd)
{
	return map_batch__each(fd, sizeof(struct ap_lifetime_key), sizeof(struct ap_lifetime), true,
			       absorb_lifetime, live);
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

static __u64 epoch_at(const struct live *live, __u64 time_ns, __u32 shift)
{
	__u64 start_ns = live->options.shared->start_ns;

	return time_ns > start_ns ? (time_ns - start_ns) >> shift : 0;
}

/* Current epoch length; the programs only update it when blocks end. */
static __u32 epoch_shift(const struct live *live)
{
	__u64 end_ns = live->end_ns ? live->end_ns : clock__now_ns();
	__u32 shift = live->options.shared->epoch_shift;

	while (epoch_at(live, end_ns, shift) >= AP_MAX_EPOCHS)
		shift++;
	return shift;
}

/* Accounts a block that was not freed: as discarded if an exec ended its address space, else as
 * live. */
static int absorb(struct live *live, __u32 space_number, const struct ap_block *block)
{
	const struct live_space *space = live_spaces__get(&live->spaces, space_number);
	__u32 shift = epoch_shift(live);
	struct ap_lifetime_key key = {
		.record = block->record,
		.shift = shift,
		.born = epoch_at(live, block->birth_ns, shift),
		.died = PROFILE_LIVE,
	};
	struct ap_count sum = sampling__count_one(block->weight, block->size_bytes,
						  live->options.records.sample_unit_shift);
	int err;

	if (space->state == SPACE_DISCARDED) {
		live->discarded += sum.calls;
		live->discarded_bytes = profile__add_up(live->discarded_bytes, sum.size_bytes);
		err = live_records__add_discarded(live->records, block->record, &sum);
		key.died = epoch_at(live, space->end_ns, shift);
		if (key.died < key.born)
			key.died = key.born;
	} else {
		err = live_records__add_live(live->records, block->record, block->birth_ns);
	}
	if (err || !live->options.records.stacks)
		return err;
	return add_lifetime(live, &key, sum.calls, sum.size_bytes);
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

	if (absorbing->purge && live_spaces__get(&live->spaces, at->space)->state == SPACE_USED)
		return 0;
	err = absorb(live, at->space, value);
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

struct moving {
	const struct live *live;
	struct profile *profile;
};

/* Moves a lifetime if its record is in the profile. 1: moved. */
static int move_lifetime(void *context, const struct ap_lifetime_key *key,
			 const struct ap_lifetime *sum)
{
	const struct moving *moving = context;
	__u32 count = live_records__count(moving->live->records, key->record);
	int err;

	if (!count)
		return 0;
	err = profile__add_lifetime(moving->profile, count, key->born, key->died, sum->blocks,
				    sum->size_bytes);
	return err ? err : 1;
}

/* Moves the lifetimes of records that are in the profile, with the current epoch length. */
static int move_lifetimes(struct live *live, struct profile *profile)
{
	struct moving moving = { live, profile };
	__u32 shift = lifetimes__shift(live->lifetimes);

	if (shift > live->moved_shift)
		profile__fold_lifetimes(profile, shift - live->moved_shift);
	live->moved_shift = shift;
	return lifetimes__move(live->lifetimes, move_lifetime, &moving);
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
	while (!err && collector__has_dumps(collector))
		err = collector__settle(collector, SIZE_MAX);
	if (!err)
		err = live_records__retire(live->records, &live->spaces, collector);
	if (!err)
		err = move_lifetimes(live, collector__profile(collector));
	live->has_ended_spaces = false;
	return err;
}

static __u64 not_negative(__s64 value)
{
	return value > 0 ? value : 0;
}

static void note_entries(struct live *live)
{
	__s64 entries = __atomic_load_n(&live->options.shared->entries, __ATOMIC_RELAXED);

	if (not_negative(entries) > live->max_entries)
		live->max_entries = entries;
}

static bool tables_run_full(const struct live *live)
{
	const struct ap_live *shared = live->options.shared;

	return (__u64)__atomic_load_n(&shared->entries, __ATOMIC_RELAXED) >= shared->grow_at;
}

/* The record that requests it may have found the ring buffer full. */
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

static int sample(struct live *live, __u64 time_ns)
{
	const struct ap_live *shared = live->options.shared;
	__u64 begin_ns = clock__now_ns();
	int err;
	struct profile_moment moment = {
		.time_ns = time_ns,
		.live = not_negative(shared->blocks),
		.live_bytes = not_negative(shared->size_bytes),
		.allocations = stat_sum(live, AP_STAT_ALLOCATIONS),
		.size_bytes = stat_sum(live, AP_STAT_ALLOCATED_BYTES),
	};

	/* When the last process has ended, its live blocks are those that it left. */
	if (!live->spaces.n_running && live->spaces.n_images) {
		moment.live = not_negative(shared->left_blocks);
		moment.live_bytes = not_negative(shared->left_bytes);
	}
	moment.rss_bytes = live_spaces__rss_bytes(&live->spaces);
	err = timeline__add(&live->timeline, &moment);
	timeline__pause(&live->timeline, SAMPLE_SHARE * (clock__now_ns() - begin_ns));
	return err;
}

void live__start(struct live *live, __u64 now_ns, bool is_new)
{
	__atomic_store_n(&live->options.shared->start_ns, now_ns, __ATOMIC_RELAXED);
	if (is_new)
		timeline__add(&live->timeline, &(struct profile_moment){ 0 });
}

int live__attend(struct live *live, struct collector *collector)
{
	__u64 time_ns = clock__now_ns() - live->options.shared->start_ns;
	int err = live_records__keep_ready(live->records);

	note_entries(live);
	if (!err && live->has_ended_spaces && live->options.records.stacks &&
	    (tables_run_full(live) || live_records__want_to_retire(live->records)))
		err = retire(live, collector);
	/* On failure the programs may find no room for blocks, and count these as untracked. */
	if (!err && !live->is_full && tables_run_full(live))
		live->is_full = add_table(live);
	if (!err && (live->wants_drain || lifetimes_run_full(live)))
		err = drain(live);
	if (!err && live->options.records.stacks && !live->end_ns &&
	    !timeline__due_ns(&live->timeline, time_ns))
		err = sample(live, time_ns);
	return err;
}

int live__timeout_ms(const struct live *live, int most)
{
	__u64 time_ns = clock__now_ns() - live->options.shared->start_ns;
	__u64 ms = (timeline__due_ns(&live->timeline, time_ns) + 999999) / 1000000;

	if (!live->options.records.stacks)
		return most;
	return ms < (__u64)most ? (int)ms : most;
}

int live__stop(struct live *live, __u64 end_ns)
{
	__atomic_store_n(&live->options.shared->stopped, 1, __ATOMIC_RELEASE);
	live->end_ns = end_ns;
	note_entries(live);
	return live->options.records.stacks ? sample(live, end_ns - live->options.shared->start_ns)
					    : 0;
}

/* Reads calls that have not returned, and the old blocks that their reallocs took out of the
 * tables. */
static int read_threads(struct live *live)
{
	__u64 key, next;
	bool has_key = false;
	struct ap_thread thread;
	int err = 0, end = 0, missing;

	while (!err && !(end = bpf_map_get_next_key(live->options.threads_fd, has_key ? &key : NULL,
						    &next))) {
		key = next;
		has_key = true;
		missing = bpf_map_lookup_elem(live->options.threads_fd, &key, &thread);
		if (missing) {
			/* During a snapshot threads of the target may end. */
			live->options.counters->unread += missing != -ENOENT;
			continue;
		}
		for (__u32 i = 0; i < thread.n_pending && i < AP_MAX_PENDING && !err; i++) {
			const struct ap_pending *pending = &thread.pending[i];

			if (pending->record != AP_NO_RECORD)
				live->unfinished += pending->weight;
			if (pending->has_old)
				err = absorb(live, pending->space, &pending->old);
		}
	}
	if (end && end != -ENOENT) /* -ENOENT is the regular end */
		live->options.counters->unread++;
	return err;
}

int live__function(const struct live *live, enum ap_function function, struct ap_blocks *out)
{
	return live_records__function(live->records, function, out);
}

/* Collects everything but the lifetimes in the programs' maps. */
static int collect_rest(struct live *live, struct collector *collector)
{
	struct profile *profile = collector__profile(collector);
	int err = read_threads(live);

	for (__u32 i = 0; i < live->n_tables && !err; i++)
		err = read_table(live, live->tables[i].fd, false);
	if (err || !live->options.records.stacks)
		return err;
	err = live_records__collect(live->records, &live->spaces, collector);
	if (!err)
		err = move_lifetimes(live, profile);
	for (size_t i = 0; i < live->timeline.n && !err; i++)
		err = profile__add_moment(profile, &live->timeline.moments[i]);
	return err;
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

	live->end_ns = end_ns;
	err = sample(live, end_ns - live->options.shared->start_ns);
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

__u64 live__discarded(const struct live *live, __u64 *size_bytes)
{
	*size_bytes = live->discarded_bytes;
	return live->discarded;
}

__u64 live__epoch_ns(const struct live *live)
{
	return 1ULL << lifetimes__shift(live->lifetimes);
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
