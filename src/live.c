// SPDX-License-Identifier: GPL-3.0-or-later
#include "live.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "collector.h"
#include "lifetimes.h"
#include "map_batch.h"
#include "profile.h"
#include "sampling.h"
#include "timeline.h"

/* Blocks of the first table; each further one has four times as many. */
#define FIRST_TABLE 65536
/* Bytes of the kernel that an entry of a table takes: of a key, a block and 48 of the kernel's own, which
 * is 96, and since Linux 6.1 a link of 8, its allocator makes 128. */
#define ENTRY_BYTES  128
#define BUCKET_BYTES 16
/* Buckets are a power of two, so there are up to two of them for each block. */
#define BLOCK_BYTES (ENTRY_BYTES + 2 * BUCKET_BYTES)
/* Records that are kept ready at least. */
#define RECORDS_AHEAD 8192

/* Of the time at the most one part in so many goes into looking at the processes' memory: where there
 * are many processes, the first moments come less often. */
#define SAMPLE_SHARE 50

/* An address space, by its number. */
struct space {
	enum {
		SPACE_USED,
		SPACE_LEFT,	 /* by an exit: what was in it was left behind */
		SPACE_DISCARDED, /* by an exec */
	} state;
	__u64 end_ns;
	__u64 generation; /* of the peak, at the end */
};

/* A process image, by the kernel's id. */
struct image {
	__u32 pid;
	__u32 space;
	bool runs;
};

/* What the programs' record of the same index does not have. */
struct record_extra {
	__u64 discarded, discarded_bytes;
	struct profile_estimate of_discarded; /* with sampling */
	__u64 oldest_ns; /* birth of the oldest live one, 0 where there is none */
};

struct live {
	struct live_options options;
	__u32 n_tables;
	struct table {
		int fd;
		__u32 capacity;
	} tables[AP_LIVE_TABLES];
	__u64 capacity;
	__u64 most_entries; /* that were seen in the tables */
	int *chunks;
	__u32 n_chunks;
	struct space *spaces;
	size_t n_spaces;
	struct image *images;
	size_t n_images;
	__u32 *running; /* ids of images */
	size_t n_running, running_room;
	struct record_extra *extras;
	size_t n_extras;
	bool has_ended_spaces; /* whose blocks are in the tables still */
	struct lifetimes *lifetimes;
	int current; /* of the two lifetimes maps */
	bool wants_drain;
	struct timeline timeline;
	__u64 end_ns; /* 0 while it goes on */
	__u64 unfinished;
};

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static __u64 default_max_blocks(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		return 1 << 24;
	return (__u64)info.totalram * info.mem_unit / 4 / BLOCK_BYTES;
}

/* The next table, four times the last one, as far as the bound allows. */
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

/* Every update of a map of maps waits for a grace period: all at once where the kernel can. */
static int publish_chunks(struct live *live, __u32 first, __u32 n)
{
	_cleanup_(free_ptr) __u32 *keys = calloc(n, sizeof(*keys));
	__u32 done = n;

	if (!keys)
		return -ENOMEM;
	for (__u32 i = 0; i < n; i++)
		keys[i] = first + i;
	if (!bpf_map_update_batch(live->options.records_fd, keys, live->chunks + first, &done,
				  NULL))
		return 0;
	for (__u32 i = 0; i < n; i++)
		if (bpf_map_update_elem(live->options.records_fd, &keys[i],
					&live->chunks[first + i], BPF_ANY))
			return -errno;
	return 0;
}

static int add_chunks(struct live *live, __u32 wanted)
{
	__u32 first = live->n_chunks, n = 0, ready;
	int *chunks, err;

	chunks = reallocarray(live->chunks, wanted, sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	live->chunks = chunks;
	for (; first + n < wanted; n++) {
		chunks[first + n] =
			bpf_map_create(BPF_MAP_TYPE_ARRAY, "record_chunk", sizeof(__u32),
				       sizeof(struct ap_blocks), AP_CHUNK, NULL);
		if (chunks[first + n] < 0)
			break;
	}
	if (!n)
		return -ENOMEM;
	live->n_chunks += n;
	err = publish_chunks(live, first, n);
	ready = live->n_chunks << AP_CHUNK_BITS;
	if (ready > live->options.max_records)
		ready = live->options.max_records;
	if (!err)
		__atomic_store_n(&live->options.shared->records_ready, ready, __ATOMIC_RELEASE);
	return err;
}

static int keep_records_ready(struct live *live)
{
	__u32 used = __atomic_load_n(&live->options.shared->n_records, __ATOMIC_RELAXED);
	__u64 wanted = used + (__u64)(used / 2 > RECORDS_AHEAD ? used / 2 : RECORDS_AHEAD);

	if (!live->options.stacks)
		wanted = AP_FUNCTIONS;
	if (wanted > live->options.max_records)
		wanted = live->options.max_records;
	/* Not for every few: each time costs a grace period. */
	if (live->n_chunks && used + RECORDS_AHEAD / 2 < live->n_chunks << AP_CHUNK_BITS)
		return 0;
	wanted = (wanted + AP_CHUNK - 1) >> AP_CHUNK_BITS;
	return wanted > live->n_chunks ? add_chunks(live, wanted) : 0;
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
	options->shared->max_records = options->max_records;
	live->lifetimes = lifetimes__new();
	if (live->lifetimes)
		err = add_table(live);
	if (!err)
		err = keep_records_ready(live);
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
	for (__u32 i = 0; i < live->n_chunks; i++)
		close(live->chunks[i]);
	free(live->chunks);
	free(live->spaces);
	free(live->images);
	free(live->running);
	free(live->extras);
	lifetimes__free(live->lifetimes);
	timeline__release(&live->timeline);
	free(live);
}

static struct space *get_space(struct live *live, __u32 number)
{
	if (array__reserve_zeroed(&live->spaces, &live->n_spaces, (size_t)number + 1,
				  sizeof(*live->spaces)))
		return NULL;
	return &live->spaces[number];
}

static void stop_running(struct live *live, __u32 id)
{
	for (size_t i = 0; i < live->n_running; i++) {
		if (live->running[i] != id)
			continue;
		live->running[i] = live->running[--live->n_running];
		return;
	}
}

static int handle_process(struct live *live, const struct ap_process_record *record)
{
	struct space *space;
	struct image *image;

	if (record->ended_space) {
		space = get_space(live, record->ended_space);
		if (!space)
			return -ENOMEM;
		space->state = record->event == AP_PROCESS_EXECED ? SPACE_DISCARDED : SPACE_LEFT;
		space->end_ns = record->time_ns;
		space->generation = record->generation;
		live->has_ended_spaces = true;
	}
	if (record->event == AP_PROCESS_EXITED) {
		stop_running(live, record->id);
		return 0;
	}
	if (record->event == AP_PROCESS_EXECED)
		stop_running(live, record->parent);
	if (array__reserve_zeroed(&live->images, &live->n_images, (size_t)record->id + 1,
				  sizeof(*live->images)) ||
	    array__reserve_zeroed(&live->running, &live->running_room, live->n_running + 1,
				  sizeof(*live->running)))
		return -ENOMEM;
	image = &live->images[record->id];
	image->pid = record->pid;
	image->space = record->space;
	live->running[live->n_running++] = record->id;
	return 0;
}

int live__handle_record(struct live *live, const void *record, size_t size)
{
	const struct ap_lifetime_record *lifetime = record;

	if (size < sizeof(__u32))
		return 0;
	switch (*(const __u32 *)record) {
	case AP_RECORD_PROCESS:
		return handle_process(live, record);
	case AP_RECORD_LIFETIME:
		return lifetimes__add(live->lifetimes, &lifetime->key, lifetime->weight,
				      lifetime->weight * lifetime->size_bytes);
	case AP_RECORD_DRAIN:
		live->wants_drain = true;
		return 0;
	}
	return 0;
}

static int move_lifetime(void *context, const void *key, const void *value)
{
	const struct ap_lifetime *sums = value;

	return lifetimes__add(context, key, sums->blocks, sums->size_bytes);
}

static int read_lifetimes(struct live *live, int fd)
{
	return map_batch__each(fd, sizeof(struct ap_lifetime_key), sizeof(struct ap_lifetime), true,
			       move_lifetime, live->lifetimes);
}

/* As collector__begin_drain(): the update waits until no program has the old map in hand. */
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

/* The length of epochs now; where nothing is freed the programs do not look. */
static __u32 epoch_shift(const struct live *live)
{
	__u64 end_ns = live->end_ns ? live->end_ns : now_ns();
	__u32 shift = live->options.shared->epoch_shift;

	while (epoch_at(live, end_ns, shift) >= AP_MAX_EPOCHS)
		shift++;
	return shift;
}

/* Of a block that no free has ended: what its space's state says of it. */
static int absorb(struct live *live, __u32 space_number, const struct ap_block *block)
{
	static const struct space unknown = { .state = SPACE_USED };
	const struct space *space =
		space_number < live->n_spaces ? &live->spaces[space_number] : &unknown;
	__u32 shift = epoch_shift(live);
	struct ap_lifetime_key key = {
		.record = block->record,
		.shift = shift,
		.born = epoch_at(live, block->birth_ns, shift),
		.died = PROFILE_LIVE,
	};
	struct ap_count sum = sampling__count_one(block->weight, block->size_bytes,
						  live->options.sample_unit_shift);
	struct profile_estimate estimate =
		sampling__estimate(&sum.estimate, live->options.sample_unit_shift);
	struct record_extra *extra;

	if (block->record >= live->options.max_records ||
	    array__reserve_zeroed(&live->extras, &live->n_extras, (size_t)block->record + 1,
				  sizeof(*live->extras)))
		return -ENOMEM;
	extra = &live->extras[block->record];
	if (space->state == SPACE_DISCARDED) {
		extra->discarded += sum.calls;
		extra->discarded_bytes = profile__add_up(extra->discarded_bytes, sum.size_bytes);
		profile_estimate__add(&extra->of_discarded, &estimate);
		key.died = epoch_at(live, space->end_ns, shift);
		if (key.died < key.born)
			key.died = key.born;
	} else if (!extra->oldest_ns || block->birth_ns < extra->oldest_ns) {
		extra->oldest_ns = block->birth_ns;
	}
	return live->options.stacks
		       ? lifetimes__add(live->lifetimes, &key, sum.calls, sum.size_bytes)
		       : 0;
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

	if (absorbing->purge &&
	    (at->space >= live->n_spaces || live->spaces[at->space].state == SPACE_USED))
		return 0;
	err = absorb(live, at->space, value);
	if (!err && absorbing->purge && !bpf_map_delete_elem(absorbing->fd, key))
		__atomic_fetch_sub(&live->options.shared->entries, 1, __ATOMIC_RELAXED);
	return err;
}

/* Absorbs the blocks of a table: with @purge those of ended spaces, which no program can reach any
 * more, and takes them out of it; else all. */
static int read_table(struct live *live, int fd, bool purge)
{
	struct absorbing absorbing = { .live = live, .fd = fd, .purge = purge };

	return map_batch__each(fd, sizeof(struct ap_block_key), sizeof(struct ap_block), false,
			       absorb_entry, &absorbing);
}

static int purge(struct live *live)
{
	int err = 0;

	live->has_ended_spaces = false;
	for (__u32 i = 0; i < live->n_tables && !err; i++)
		err = read_table(live, live->tables[i].fd, true);
	return err;
}

static __u64 not_negative(__s64 value)
{
	return value > 0 ? value : 0;
}

static void note_entries(struct live *live)
{
	__s64 entries = __atomic_load_n(&live->options.shared->entries, __ATOMIC_RELAXED);

	if (not_negative(entries) > live->most_entries)
		live->most_entries = entries;
}

static bool tables_run_full(const struct live *live)
{
	const struct ap_live *shared = live->options.shared;

	return (__u64)__atomic_load_n(&shared->entries, __ATOMIC_RELAXED) >= shared->grow_at;
}

static __u64 stat_sum(const struct live *live, __u32 which)
{
	int n_cpus = libbpf_num_possible_cpus();
	_cleanup_(free_ptr) __u64 *values = calloc(n_cpus, sizeof(*values));
	__u64 sum = 0;

	if (!values || bpf_map_lookup_elem(live->options.stats_fd, &which, values))
		return 0;
	for (int cpu = 0; cpu < n_cpus; cpu++)
		sum += values[cpu];
	return sum;
}

/* RssAnon of status(5): what is resident and of no file. */
static __u64 rss_bytes(pid_t pid)
{
	_cleanup_(close_file) FILE *file = NULL;
	unsigned long long resident, shared;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/statm", pid);
	file = fopen(name, "re");
	if (!file || fscanf(file, "%*u %llu %llu", &resident, &shared) != 2 || shared > resident)
		return 0;
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

static int sample(struct live *live, __u64 time_ns)
{
	const struct ap_live *shared = live->options.shared;
	__u64 begin_ns = now_ns();
	int err;
	struct profile_moment moment = {
		.time_ns = time_ns,
		.live = not_negative(shared->blocks),
		.live_bytes = not_negative(shared->size_bytes),
		.allocations = stat_sum(live, AP_STAT_ALLOCATIONS),
		.size_bytes = stat_sum(live, AP_STAT_ALLOCATED_BYTES),
	};

	/* When the last process has ended, what it left behind is live. */
	if (!live->n_running && live->n_images) {
		moment.live = not_negative(shared->left_blocks);
		moment.live_bytes = not_negative(shared->left_bytes);
	}
	for (size_t i = 0; i < live->n_running; i++)
		moment.rss_bytes += rss_bytes(live->images[live->running[i]].pid);
	err = timeline__add(&live->timeline, &moment);
	timeline__pause(&live->timeline, SAMPLE_SHARE * (now_ns() - begin_ns));
	return err;
}

void live__start(struct live *live, __u64 now_ns, bool is_new)
{
	__atomic_store_n(&live->options.shared->start_ns, now_ns, __ATOMIC_RELAXED);
	if (is_new)
		timeline__add(&live->timeline, &(struct profile_moment){ 0 });
}

int live__attend(struct live *live)
{
	__u64 time_ns = now_ns() - live->options.shared->start_ns;
	int err = keep_records_ready(live);

	note_entries(live);
	if (!err && live->has_ended_spaces && tables_run_full(live))
		err = purge(live);
	if (!err && tables_run_full(live))
		err = add_table(live);
	if (!err && live->wants_drain)
		err = drain(live);
	if (!err && live->options.stacks && !live->end_ns &&
	    !timeline__due_ns(&live->timeline, time_ns))
		err = sample(live, time_ns);
	return err;
}

int live__timeout_ms(const struct live *live, int most)
{
	__u64 time_ns = now_ns() - live->options.shared->start_ns;
	__u64 ms = (timeline__due_ns(&live->timeline, time_ns) + 999999) / 1000000;

	if (!live->options.stacks)
		return most;
	return ms < (__u64)most ? (int)ms : most;
}

int live__stop(struct live *live, __u64 end_ns)
{
	__atomic_store_n(&live->options.shared->stopped, 1, __ATOMIC_RELEASE);
	live->end_ns = end_ns;
	note_entries(live);
	return live->options.stacks ? sample(live, end_ns - live->options.shared->start_ns) : 0;
}

/* Calls that have not returned, and the old blocks that their reallocs hold. */
static int read_threads(struct live *live)
{
	__u64 key, next;
	bool has_key = false;
	struct ap_thread thread;
	int err = 0;

	while (!err &&
	       !bpf_map_get_next_key(live->options.threads_fd, has_key ? &key : NULL, &next)) {
		key = next;
		has_key = true;
		if (bpf_map_lookup_elem(live->options.threads_fd, &key, &thread))
			continue;
		for (__u32 i = 0; i < thread.n_pending && i < AP_MAX_PENDING && !err; i++) {
			const struct ap_pending *pending = &thread.pending[i];

			if (pending->record != AP_NO_RECORD)
				live->unfinished += pending->weight;
			if (pending->has_old)
				err = absorb(live, pending->space, &pending->old);
		}
	}
	return err;
}

static int read_record(const struct live *live, __u32 index, struct ap_blocks *out)
{
	__u32 at = index & (AP_CHUNK - 1);

	if (index >> AP_CHUNK_BITS >= live->n_chunks)
		return -ENOENT;
	return bpf_map_lookup_elem(live->chunks[index >> AP_CHUNK_BITS], &at, out) ? -errno : 0;
}

int live__function(const struct live *live, enum ap_function function, struct ap_blocks *out)
{
	return read_record(live, function, out);
}

/* A record that has not changed since the peak had then what it has now, if its space was there. */
static void find_peak(const struct live *live, const struct ap_blocks *record, __u32 image,
		      __u64 *peak, __u64 *peak_bytes)
{
	__u64 generation = live->options.shared->generation;
	__u32 space = image < live->n_images ? live->images[image].space : 0;

	if (record->generation == generation) {
		*peak = record->peak;
		*peak_bytes = record->peak_bytes;
	} else if (space < live->n_spaces && live->spaces[space].state != SPACE_USED &&
		   live->spaces[space].generation < generation) {
		*peak = *peak_bytes = 0;
	} else {
		*peak = record->allocations - record->frees;
		*peak_bytes = record->size_bytes - record->freed_bytes;
	}
}

static void add_record(const struct live *live, const struct ap_blocks *record, __u32 index,
		       __u32 image, struct profile_blocks *blocks)
{
	static const struct record_extra none;
	const struct record_extra *extra = index < live->n_extras ? &live->extras[index] : &none;
	__u64 peak, peak_bytes, oldest_ns;

	find_peak(live, record, image, &peak, &peak_bytes);
	blocks->failed += record->failed;
	blocks->allocations += record->allocations;
	blocks->size_bytes = profile__add_up(blocks->size_bytes, record->size_bytes);
	blocks->frees += record->frees;
	blocks->freed_bytes = profile__add_up(blocks->freed_bytes, record->freed_bytes);
	blocks->discarded += extra->discarded;
	blocks->discarded_bytes += extra->discarded_bytes;
	blocks->temporary += record->temporary;
	blocks->temporary_bytes = profile__add_up(blocks->temporary_bytes, record->temporary_bytes);
	blocks->peak += peak;
	blocks->peak_bytes = profile__add_up(blocks->peak_bytes, peak_bytes);
	if (extra->oldest_ns) {
		oldest_ns = extra->oldest_ns > live->options.shared->start_ns
				    ? extra->oldest_ns - live->options.shared->start_ns
				    : 0;
		if (!blocks->oldest_ns || oldest_ns < blocks->oldest_ns)
			blocks->oldest_ns = oldest_ns;
	}
	for (int i = 0; i < AP_BUCKETS; i++) {
		blocks->sizes[i] += record->sizes[i];
		blocks->lifetimes[i] += record->lifetimes[i];
	}
}

static int add_samples(const struct live *live, const struct ap_blocks *record, __u32 index,
		       struct profile *profile, __u32 count)
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
	if (index < live->n_extras)
		profile_estimate__subtract(&remaining, &live->extras[index].of_discarded);
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_ALLOCATIONS], &allocations);
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_LIVE], &remaining);
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_TEMPORARY], &temporary);
	return 0;
}

/* The record's key is known to the profile as count *@count, 0 where its stack is not known. */
static int collect_record(struct live *live, struct collector *collector,
			  const struct ap_count_key *key, __u32 index, __u32 *count)
{
	struct profile *profile = collector__profile(collector);
	struct profile_blocks *blocks;
	struct ap_blocks record;
	int err;

	if (read_record(live, index, &record))
		return 0;
	/* Begun, and then the call was lost. */
	if (!record.calls)
		return 0;
	err = collector__add_record(collector, key,
				    &(struct ap_count){
					    .calls = record.calls,
					    .size_bytes = record.asked_bytes,
					    .estimate = record.of_calls,
				    },
				    count);
	if (err || !*count)
		return err;
	err = profile__get_blocks(profile, *count, &blocks);
	if (!err)
		add_record(live, &record, index, key->process, blocks);
	if (!err && live->options.sample)
		err = add_samples(live, &record, index, profile, *count);
	return err;
}

static int collect_records(struct live *live, struct collector *collector, __u32 *counts)
{
	struct ap_count_key key, next;
	bool has_key = false;
	__u32 index;
	int err = 0;

	while (!err && !bpf_map_get_next_key(live->options.record_indexes_fd, has_key ? &key : NULL,
					     &next)) {
		key = next;
		has_key = true;
		if (bpf_map_lookup_elem(live->options.record_indexes_fd, &key, &index) ||
		    index >= live->options.max_records)
			continue;
		err = collect_record(live, collector, &key, index, &counts[index]);
	}
	return err;
}

static int collect_lifetimes(struct live *live, struct profile *profile, const __u32 *counts)
{
	const struct ap_lifetime *sum;
	struct ap_lifetime_key key;
	int err = 0;

	for (size_t i = 0; !err && (sum = lifetimes__get(live->lifetimes, i, &key)); i++)
		if (key.record < live->options.max_records && counts[key.record])
			err = profile__add_lifetime(profile, counts[key.record], key.born, key.died,
						    sum->blocks, sum->size_bytes);
	return err;
}

/* All but the lifetimes that the programs' maps still have. */
static int collect_rest(struct live *live, struct collector *collector)
{
	_cleanup_(free_ptr) __u32 *counts = calloc(live->options.max_records, sizeof(*counts));
	struct profile *profile = collector__profile(collector);
	int err;

	if (!counts)
		return -ENOMEM;
	err = read_threads(live);
	for (__u32 i = 0; i < live->n_tables && !err; i++)
		err = read_table(live, live->tables[i].fd, false);
	if (err || !live->options.stacks)
		return err;
	err = collect_records(live, collector, counts);
	if (!err)
		err = collect_lifetimes(live, profile, counts);
	for (size_t i = 0; i < live->timeline.n && !err; i++)
		err = profile__add_moment(profile, &live->timeline.moments[i]);
	return err;
}

int live__collect(struct live *live, struct collector *collector)
{
	int err = 0;

	for (int i = 0; i < 2 && !err && live->options.stacks; i++)
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
		    __atomic_load_n(&shared->n_records, __ATOMIC_RELAXED) +
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
	__u64 discarded = 0;

	*size_bytes = 0;
	for (size_t i = 0; i < live->n_extras; i++) {
		discarded += live->extras[i].discarded;
		*size_bytes = profile__add_up(*size_bytes, live->extras[i].discarded_bytes);
	}
	return discarded;
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
	out->entries = live->most_entries;
	out->bytes = BUCKET_BYTES * buckets + ENTRY_BYTES * out->entries +
		     (__u64)live->n_chunks * AP_CHUNK * sizeof(struct ap_blocks);
	out->max_blocks = live->options.max_blocks;
}
