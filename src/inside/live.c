// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "live.h"

#include <linux/errno.h>

#include "blocks.h"
#include "memory.h"
#include "stacks.h"

/* Entries that a thread finds without a search. They are void when the table has grown. */
#define KNOWN_RECORDS 256

/* What a thread knows of its entries, in its own memory. */
struct live_memory {
	struct {
		__u64 stack;
		__u32 function;
		struct inside_record *entry;
	} known[KNOWN_RECORDS];
	/* Entries by number: a hash table with twice the room of the records' table. */
	struct indexed {
		__u32 record; /* 0: free */
		__u32 at;
	} * index;
	size_t index_bytes;
};

static struct mapped_array histograms;

static __u64 record_hash(const void *entry)
{
	const struct inside_record *record = entry;

	if (!record->record)
		return 0;
	return (record->stack ? record->stack + record->function : record->record) | 1ULL << 63;
}

static const struct table_kind records_kind = { sizeof(struct inside_record), record_hash };

static __u64 lifetime_hash_of(const struct ap_lifetime_key *key)
{
	__u64 hash = ((__u64)key->record << 32 | key->born) ^
		     ((__u64)key->shift << 32 | key->died) * 0x9e3779b97f4a7c15ULL;

	hash *= 0xff51afd7ed558ccdULL;
	return (hash ^ hash >> 32) | 1ULL << 63;
}

static __u64 lifetime_hash(const void *entry)
{
	const struct inside_lifetime *lifetime = entry;

	return lifetime->lifetime.blocks ? lifetime_hash_of(&lifetime->key) : 0;
}

static const struct table_kind lifetimes_kind = { sizeof(struct inside_lifetime), lifetime_hash };

static inline void stat(struct thread *thread, enum ap_stat which, __u64 n)
{
	counter__add(&thread->shared->stats[which], n);
}

static inline struct ap_blocks *blocks_of(struct inside_record *entry)
{
	return (struct ap_blocks *)entry->blocks;
}

static inline __u64 now_ns(void)
{
	const struct inside_settings *settings = &process.header->settings;
	__u64 ticks;

	if (!settings->ns_per_tick)
		return sys__now_ns();
	ticks = __builtin_ia32_rdtsc() - settings->start_ticks;
	return settings->start_ns + (__u64)((unsigned __int128)ticks * settings->ns_per_tick >> 32);
}

static bool thread__is_ready(struct thread *thread)
{
	if (likely(thread->live))
		return true;
	thread->live = memory__take_private(sizeof(*thread->live));
	return thread->live;
}

static inline struct indexed *index_slot(const struct thread *thread, __u32 record)
{
	__u32 mask = (2U << thread->records.shift) - 1;

	for (__u32 i = record * 0x9e3779b1U >> 3;; i++) {
		struct indexed *slot = &thread->live->index[i & mask];

		if (!slot->record || slot->record == record)
			return slot;
	}
}

/* The table has grown: its entries are elsewhere. */
static bool index_again(struct thread *thread)
{
	struct live_memory *live = thread->live;
	size_t bytes = sizeof(*live->index) * 2 << thread->records.shift;
	const struct inside_record *entries = (const void *)thread->records.entries;
	struct indexed *index = sys__map_private(bytes);

	if (!index)
		return false;
	if (live->index)
		sys__unmap(live->index, live->index_bytes);
	live->index = index;
	live->index_bytes = bytes;
	memset(live->known, 0, sizeof(live->known));
	for (__u32 i = 0; i < 1U << thread->records.shift; i++)
		if (entries[i].record)
			*index_slot(thread, entries[i].record) =
				(struct indexed){ entries[i].record, i };
	return true;
}

/* An entry for a key for which the thread has none. */
static __attribute__((noinline)) struct inside_record *new_entry(struct thread *thread, __u64 stack,
								 __u32 function, __u32 record)
{
	const char *before = thread->records.entries;
	struct inside_record *entry;

	if (!table__reserve(&thread->records, &records_kind, &thread->shared->records))
		return NULL;
	if (thread->records.entries != before && !index_again(thread)) {
		/* Without its index the table is of no use: another one begins, and this one is lost. */
		return NULL;
	}
	entry = table__first(&thread->records, sizeof(*entry), stack ? stack + function : record);
	while (entry->record)
		entry = table__next(&thread->records, sizeof(*entry), entry);
	entry->stack = stack;
	entry->function = function;
	__atomic_store_n(&entry->record, record, __ATOMIC_RELEASE);
	thread->records.n++;
	*index_slot(thread, record) =
		(struct indexed){ record, entry - (struct inside_record *)thread->records.entries };
	return entry;
}

static __attribute__((noinline)) struct inside_record *search_by_stack(struct thread *thread,
								       __u64 stack, __u32 function)
{
	struct inside_record *entry;

	if (thread->records.entries) {
		entry = table__first(&thread->records, sizeof(*entry), stack + function);
		for (; entry->record; entry = table__next(&thread->records, sizeof(*entry), entry))
			if (entry->stack == stack && entry->function == function)
				return entry;
	}
	if (!stacks__publish(thread->walker, stack))
		return NULL;
	return new_entry(thread, stack, function,
			 __atomic_add_fetch(&process.header->live.n_records, 1, __ATOMIC_RELAXED));
}

static inline struct inside_record *entry_of_stack(struct thread *thread, __u64 stack,
						   __u32 function)
{
	__u32 at = (stack + function) & (KNOWN_RECORDS - 1);
	struct inside_record *entry = thread->live->known[at].entry;

	if (likely(thread->live->known[at].stack == stack &&
		   thread->live->known[at].function == function))
		return entry;
	entry = search_by_stack(thread, stack, function);
	if (!entry)
		return NULL;
	thread->live->known[at].stack = stack;
	thread->live->known[at].function = function;
	thread->live->known[at].entry = entry;
	return entry;
}

static inline struct inside_record *entry_of_record(struct thread *thread, __u32 record)
{
	const struct indexed *slot = thread->live->index ? index_slot(thread, record) : NULL;

	if (likely(slot && slot->record))
		return (struct inside_record *)thread->records.entries + slot->at;
	return new_entry(thread, 0, 0, record);
}

/* Before an entry changes: its share of what was live when the peak generation began. */
static inline void touch(struct ap_blocks *blocks)
{
	__u64 generation = __atomic_load_n(&process.header->live.generation, __ATOMIC_RELAXED);

	if (likely(blocks->generation == generation))
		return;
	blocks->peak = blocks->allocations - blocks->frees;
	blocks->peak_bytes = blocks->size_bytes - blocks->freed_bytes;
	blocks->generation = generation;
}

static inline int significant_bits(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

static __attribute__((noinline)) struct ap_histograms *wide_of(struct ap_blocks *blocks)
{
	struct inside_array *array = &process.header->histograms;
	__u32 index;

	if (!blocks->histograms) {
		if (!mapped_array__add(&histograms, array, sizeof(struct ap_histograms), &index))
			return NULL;
		blocks->histograms = index + 1;
	}
	return mapped_array__get(&histograms, array, sizeof(struct ap_histograms),
				 blocks->histograms - 1);
}

static inline void add_to_histogram(struct thread *thread, struct ap_blocks *blocks,
				    __u32 first_tag, __u64 value)
{
	__u32 tag = first_tag + significant_bits(value);
	struct ap_histograms *wide;

	for (int i = 0; i < AP_SLOTS; i++) {
		__u32 used = blocks->tags >> 8 * i & 0xff;

		if (!used) {
			blocks->tags |= (__u64)tag << 8 * i;
			used = tag;
		}
		if (used == tag) {
			counter__add(&blocks->slots[i], 1);
			return;
		}
	}
	wide = wide_of(blocks);
	if (wide)
		counter__add(&wide->buckets[tag - 1], 1);
	else
		stat(thread, AP_STAT_HISTOGRAMS_LOST, 1);
}

static void count_lifetime(struct thread *thread, const struct ap_block *block, __u64 now)
{
	struct inside_live *live = &process.header->live;
	__u64 start_ns = process.header->settings.start_ns, died_ns = now - start_ns;
	__u32 shift = __atomic_load_n(&live->epoch_shift, __ATOMIC_RELAXED) & 63;
	struct inside_lifetime *lifetime;
	struct ap_lifetime_key key;

	if (unlikely(died_ns >> shift >= AP_MAX_EPOCHS)) {
		shift = significant_bits(died_ns / AP_MAX_EPOCHS);
		__atomic_store_n(&live->epoch_shift, shift, __ATOMIC_RELAXED);
	}
	key = (struct ap_lifetime_key){ block->record, shift, (block->birth_ns - start_ns) >> shift,
					died_ns >> shift };
	if (!table__reserve(&thread->lifetimes, &lifetimes_kind, &thread->shared->lifetimes)) {
		stat(thread, AP_STAT_LIFETIMES_LOST, 1);
		return;
	}
	lifetime = table__first(&thread->lifetimes, sizeof(*lifetime), lifetime_hash_of(&key));
	for (; lifetime->lifetime.blocks;
	     lifetime = table__next(&thread->lifetimes, sizeof(*lifetime), lifetime))
		if (lifetime->key.record == key.record && lifetime->key.shift == key.shift &&
		    lifetime->key.born == key.born && lifetime->key.died == key.died) {
			counter__add(&lifetime->lifetime.size_bytes, block->size_bytes);
			counter__add(&lifetime->lifetime.blocks, 1);
			return;
		}
	lifetime->key = key;
	lifetime->lifetime.size_bytes = block->size_bytes;
	__atomic_store_n(&lifetime->lifetime.blocks, 1, __ATOMIC_RELEASE);
	thread->lifetimes.n++;
}

static __attribute__((noinline)) void publish_live(struct thread *thread)
{
	struct inside_live *live = &process.header->live;
	__u64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED), most;
	__s64 now;

	__atomic_fetch_add(&live->blocks, thread->live_blocks, __ATOMIC_RELAXED);
	now = __atomic_add_fetch(&live->size_bytes, thread->live_bytes, __ATOMIC_RELAXED);
	thread->live_blocks = thread->live_bytes = 0;
	if (now <= 0)
		return;
	most = __atomic_load_n(&live->max_bytes, __ATOMIC_RELAXED);
	if ((__u64)now > most)
		__atomic_compare_exchange_n(&live->max_bytes, &most, now, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	if ((__u64)now > mark + (mark >> 7) &&
	    __atomic_compare_exchange_n(&live->mark_bytes, &mark, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_fetch_add(&live->generation, 1, __ATOMIC_RELAXED);
}

/* A thread's share of what it keeps for itself of the peak: 1/4096. */
#define KEPT_SHIFT 12

/* Adds to what is live in all processes. A thread keeps its share for itself while nobody could see a new peak,
 * and if others are measured, too, while it is small. */
static inline void add_live(struct thread *thread, __s64 blocks, __s64 size_bytes)
{
	const struct inside_live *live = &process.header->live;
	__s64 now;

	thread->live_blocks += blocks;
	thread->live_bytes += size_bytes;
	now = __atomic_load_n(&live->size_bytes, __ATOMIC_RELAXED) + thread->live_bytes;
	if (process__is_alone()) {
		if (now <= (__s64)__atomic_load_n(&live->max_bytes, __ATOMIC_RELAXED))
			return;
	} else {
		__s64 kept =
			(__s64)__atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED) >> KEPT_SHIFT;

		if (thread->live_bytes <= kept && thread->live_bytes >= -kept)
			return;
	}
	publish_live(thread);
}

enum block_end {
	BLOCK_FREED,
	BLOCK_MOVED,
	BLOCK_UNSEEN,
};

static void end_block(struct thread *thread, const struct ap_block *block, __u64 now,
		      enum block_end how)
{
	struct inside_record *entry = entry_of_record(thread, block->record);
	const struct thread *owner = thread->owner;
	struct ap_blocks *blocks;

	if (!entry) {
		stat(thread, AP_STAT_DROPPED, 1);
		return;
	}
	blocks = blocks_of(entry);
	touch(blocks);
	counter__add(&blocks->frees, 1);
	counter__add(&blocks->freed_bytes, block->size_bytes);
	stat(thread, AP_STAT_FREES, 1);
	stat(thread, AP_STAT_FREED_BYTES, block->size_bytes);
	if (how != BLOCK_MOVED) {
		stat(thread, AP_STAT_DEALLOCATIONS, 1);
		stat(thread, AP_STAT_DEALLOCATED_BYTES, block->size_bytes);
	}
	add_live(thread, -1, -(__s64)block->size_bytes);
	if (how == BLOCK_UNSEEN)
		return;
	if (owner->number == block->thread && owner->sequence == block->sequence) {
		counter__add(&blocks->temporary, 1);
		counter__add(&blocks->temporary_bytes, block->size_bytes);
		stat(thread, AP_STAT_TEMPORARY, 1);
		stat(thread, AP_STAT_TEMPORARY_BYTES, block->size_bytes);
	}
	add_to_histogram(thread, blocks, AP_LIFETIME_TAG, now - block->birth_ns);
	count_lifetime(thread, block, now);
}

__u32 live__call(struct thread *thread, __u32 function, __u64 size_bytes, __u64 stack)
{
	struct inside_record *entry = NULL;
	struct ap_blocks *blocks;

	if (thread__is_ready(thread))
		entry = entry_of_stack(thread, stack, function);
	stat(thread, AP_STAT_EVENTS, 1);
	if (!entry) {
		stat(thread, AP_STAT_LOST + AP_LOST_COUNTS_FULL, 1);
		return 0;
	}
	blocks = blocks_of(entry);
	counter__add(&blocks->calls, 1);
	counter__add(&blocks->asked_bytes, size_bytes);
	return entry->record;
}

/* Whether the block is followed. */
static bool begin_block(struct thread *thread, __u32 record, __u64 address, __u64 size_bytes)
{
	struct ap_block block = {
		.size_bytes = size_bytes,
		.record = record,
		.thread = thread->owner->number,
		.sequence = thread->owner->sequence + 1,
		.birth_ns = now_ns(),
	};
	struct ap_block stale;
	int err = blocks__put(address, &block, &stale);

	if (unlikely(err == -EEXIST)) {
		stat(thread, AP_STAT_UNMATCHED, 1);
		end_block(thread, &stale, 0, BLOCK_UNSEEN);
		err = blocks__put(address, &block, &stale);
	}
	if (err)
		stat(thread, AP_STAT_UNTRACKED + AP_UNTRACKED_LIVE_FULL, 1);
	return !err;
}

static void count_block(struct thread *thread, __u32 record, __u64 size_bytes)
{
	struct inside_record *entry = entry_of_record(thread, record);
	struct ap_blocks *blocks;

	if (!entry)
		return;
	blocks = blocks_of(entry);
	touch(blocks);
	counter__add(&blocks->allocations, 1);
	counter__add(&blocks->size_bytes, size_bytes);
	add_to_histogram(thread, blocks, AP_SIZE_TAG, size_bytes);
	stat(thread, AP_STAT_ALLOCATIONS, 1);
	stat(thread, AP_STAT_ALLOCATED_BYTES, size_bytes);
	add_live(thread, 1, size_bytes);
}

static void fail(struct thread *thread, __u32 record)
{
	struct inside_record *entry = record ? entry_of_record(thread, record) : NULL;

	if (!entry)
		return;
	counter__add(&blocks_of(entry)->failed, 1);
	stat(thread, AP_STAT_FAILED, 1);
}

void live__return(struct thread *thread, __u32 record, __u64 address, __u64 size_bytes)
{
	bool added;

	if (!thread__is_ready(thread))
		return;
	if (!address) {
		fail(thread, record);
		return;
	}
	added = record && begin_block(thread, record, address, size_bytes);
	thread->owner->sequence++;
	if (added)
		count_block(thread, record, size_bytes);
}

static void count_unknown_free(struct thread *thread)
{
	stat(thread, process.inherits ? AP_STAT_FREES_INHERITED : AP_STAT_FREES_UNKNOWN, 1);
}

void live__free(struct thread *thread, __u64 address)
{
	struct ap_block block;

	if (!thread__is_ready(thread))
		return;
	if (!address)
		stat(thread, AP_STAT_FREES_NULL, 1);
	else if (likely(blocks__take(address, &block)))
		end_block(thread, &block, now_ns(), BLOCK_FREED);
	else
		count_unknown_free(thread);
}

void live__move(struct live_move *move, __u64 address)
{
	move->address = address;
	move->has_old = address && blocks__take(address, &move->old);
	if (move->has_old)
		move->entry_ns = now_ns();
}

static void end_old(struct thread *thread, const struct live_move *move, enum block_end how,
		    __u64 size_bytes)
{
	__u64 old_bytes = move->has_old ? move->old.size_bytes : 0;

	if (move->has_old)
		end_block(thread, &move->old, move->entry_ns, how);
	else
		count_unknown_free(thread);
	if (how != BLOCK_MOVED)
		return;
	stat(thread, AP_STAT_REALLOCATIONS, 1);
	if (size_bytes > old_bytes)
		stat(thread, AP_STAT_GROWN_BYTES, size_bytes - old_bytes);
	else
		stat(thread, AP_STAT_SHRUNK_BYTES, old_bytes - size_bytes);
}

void live__moved(struct thread *thread, const struct live_move *move, __u32 record, __u64 result,
		 __u64 size_bytes, bool overflows)
{
	struct ap_block stale;
	bool added;

	if (!thread__is_ready(thread))
		return;
	if (!result && move->address && !size_bytes && !overflows) {
		if (record)
			stat(thread, AP_STAT_RELEASED, 1);
		end_old(thread, move, BLOCK_FREED, 0);
		return;
	}
	if (!result) {
		fail(thread, record);
		if (move->has_old && blocks__put(move->address, &move->old, &stale))
			stat(thread, AP_STAT_DROPPED, 1);
		return;
	}
	added = record && begin_block(thread, record, result, size_bytes);
	if (move->address)
		end_old(thread, move, added ? BLOCK_MOVED : BLOCK_FREED, size_bytes);
	thread->owner->sequence++;
	if (added)
		count_block(thread, record, size_bytes);
}

/* What live__leave() took out. */
static __s64 left_bytes, left_blocks;

void live__leave(void)
{
	struct inside_live *live = &process.header->live;

	if (process.mode != INSIDE_LIVE || !process__is_itself() || left_blocks)
		return;
	process__sum_published(&left_blocks, &left_bytes);
	process__image()->end_generation = __atomic_load_n(&live->generation, __ATOMIC_RELAXED);
	__atomic_store_n(&process__image()->ended, 1, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&live->size_bytes, left_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&live->blocks, left_blocks, __ATOMIC_RELAXED);
}

void live__stay(void)
{
	struct inside_live *live = &process.header->live;

	if (process.mode != INSIDE_LIVE || !process__is_itself())
		return;
	process__image()->ended = 0;
	__atomic_fetch_add(&live->size_bytes, left_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->blocks, left_blocks, __ATOMIC_RELAXED);
	left_bytes = left_blocks = 0;
}

__attribute__((destructor)) static void end(void)
{
	live__leave();
}
