// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "live.h"

#include <linux/errno.h>

#include "blocks.h"
#include "counting.h"
#include "events.h"
#include "memory.h"
#include "own.h"
#include "process.h"
#include "regions.h"
#include "stacks.h"

void live__begin(struct inside_program *program)
{
	blocks__begin(program);
	events__begin(program);
}

void live_sum__publish(struct thread *thread)
{
	struct inside_live *live = &process.header->live;
	__u64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED), most;
	__s64 now;

	thread->live_blocks -= __atomic_exchange_n(&thread->given_blocks, 0, __ATOMIC_ACQUIRE);
	thread->live_bytes -= __atomic_exchange_n(&thread->given_bytes, 0, __ATOMIC_ACQUIRE);
	__atomic_fetch_add(&live->blocks, thread->live_blocks, __ATOMIC_RELAXED);
	now = __atomic_add_fetch(&live->size_bytes, thread->live_bytes, __ATOMIC_RELAXED);
	thread->live_blocks = thread->live_bytes = 0;
	if (now <= 0)
		return;
	most = __atomic_load_n(&live->max_bytes, __ATOMIC_RELAXED);
	if ((__u64)now > most)
		__atomic_compare_exchange_n(&live->max_bytes, &most, now, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	if (ap_peak__is_over(now, mark) &&
	    __atomic_compare_exchange_n(&live->mark_bytes, &mark, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_fetch_add(&live->generation, 1, __ATOMIC_RELAXED);
}

/* Begins a new peak generation if more is live now than at the last mark, even if not by the 1/128
 * that begins one otherwise. */
static void note_peak(struct inside_live *live)
{
	__u64 mark = __atomic_load_n(&live->mark_bytes, __ATOMIC_RELAXED);
	__s64 now = __atomic_load_n(&live->size_bytes, __ATOMIC_RELAXED);

	if (now > 0 && (__u64)now > mark &&
	    __atomic_compare_exchange_n(&live->mark_bytes, &mark, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_fetch_add(&live->generation, 1, __ATOMIC_RELAXED);
}

/* Notes in the thread what it adds, before it adds that to the sums of all processes: so the sums
 * may be too low for a moment, and never too high. */
void live__join(struct thread *first)
{
	struct inside_live *live = &process.header->live;
	__s64 blocks, size_bytes;

	if (!first || !process__is_alone())
		return;
	blocks = __atomic_load_n(&first->live_blocks, __ATOMIC_RELAXED);
	size_bytes = __atomic_load_n(&first->live_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&first->given_blocks, blocks, __ATOMIC_RELEASE);
	__atomic_fetch_add(&first->given_bytes, size_bytes, __ATOMIC_RELEASE);
	__atomic_fetch_add(&live->blocks, blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->size_bytes, size_bytes, __ATOMIC_RELAXED);
}

void live__share(void)
{
	struct thread *thread = self;
	struct claim claim;

	__u64 address = claim__sign(&claim, __builtin_frame_address(0));

	if (process.mode != INSIDE_LIVE || !thread || !*process.alive || !thread__is_own(thread) ||
	    !process__is_alone() || thread__is_claimed(thread, &claim))
		return;
	__atomic_store_n(&thread->claims[0], address, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	process__is_joined();
	live_sum__publish(thread);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->claims[0], 0, __ATOMIC_RELEASE);
	claim__end(&claim);
}

/* live__leave() has subtracted these from the sums, and live__stay() adds them again. */
static __s64 left_bytes, left_blocks, left_entries;

void live__leave(enum inside_end how)
{
	struct inside_program *program = process__program();
	struct inside_live *live;
	struct claim claim;

	claim__sign(&claim, __builtin_frame_address(0));
	/* exit(3) comes here twice, by a destructor and by _exit(2). */
	if (!process__is_itself() || program->ended != INSIDE_RUNS)
		return;
	live = &process.header->live;
	if (how == INSIDE_EXITED)
		own__end();
	if (process.mode == INSIDE_LIVE) {
		if (self && thread__is_own(self) && !thread__is_claimed(self, &claim))
			live_sum__publish(self);
		note_peak(live);
	}
	program->end_generation = __atomic_load_n(&live->generation, __ATOMIC_RELAXED);
	program->end_ns = sys__now_ns();
	__atomic_store_n(&program->ended, how, __ATOMIC_RELEASE);
	if (process.mode != INSIDE_LIVE)
		return;
	process__sum_published(&left_blocks, &left_bytes);
	/* With sampling @entries counts the blocks of the tables, each of which stands for several
	 * live ones. */
	left_entries = blocks__count();
	__atomic_fetch_sub(&live->size_bytes, left_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&live->blocks, left_blocks, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&live->entries, left_entries, __ATOMIC_RELAXED);
}

void live__stay(void)
{
	struct inside_live *live;

	if (!process__is_itself())
		return;
	live = &process.header->live;
	process__program()->ended = INSIDE_RUNS;
	if (process.mode != INSIDE_LIVE)
		return;
	__atomic_fetch_add(&live->size_bytes, left_bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->blocks, left_blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live->entries, left_entries, __ATOMIC_RELAXED);
	left_bytes = left_blocks = left_entries = 0;
}

__attribute__((destructor)) static void end(void)
{
	live__leave(INSIDE_EXITED);
}

/* How many entries a thread finds without a search of its table. They are void when the table has
 * grown. */
#define KNOWN_RECORDS 256

/* The thread's most recent entries. The memory belongs to the thread alone. */
struct live_memory {
	struct {
		__u64 stack;
		__u32 function;
		struct inside_record *entry;
	} known[KNOWN_RECORDS];
};

void live_memory__forget(struct live_memory *memory)
{
	memset(memory, 0, sizeof(*memory));
}

static struct mapped_array histograms;

void live__forget(void)
{
	histograms = (struct mapped_array){ 0 };
	stacks__forget();
}

static __u64 record_hash(const void *entry)
{
	const struct inside_record *record = entry;

	if (!record->record)
		return 0;
	return (record->stack ? record->stack + record->function : record->record) | 1ULL << 63;
}

static const struct table_kind records_kind = { sizeof(struct inside_record), record_hash };
static const struct table_kind sampled_kind = { sizeof(struct inside_sampled_record), record_hash };

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

static inline struct inside_record *entry_at(const struct thread *thread, __u32 at)
{
	return (void *)(thread->records.entries + (__u64)at * process.record_bytes);
}

static inline struct ap_blocks *blocks_of(struct inside_record *entry)
{
	return (struct ap_blocks *)entry->blocks;
}

/* How long the counter and the clock are compared: then reading both, which takes less than a microsecond, has
 * the rate wrong by 1 in 50,000 at the most. */
#define COMPARED_NS 50000000ULL

/* Without ticks the kernel is asked for the time. In a process with a file of its own nobody has measured their rate
 * before it began. */
static __attribute__((noinline)) __u64 ask_now_ns(struct inside_settings *settings)
{
	__u64 ticks, before, now = sys__now_ns();

	if (!settings->is_own || !settings->start_ticks || settings->ns_per_tick ||
	    sys_limits.no_ticks || now - settings->start_ns < COMPARED_NS ||
	    !sys__read_clocks(&now, &ticks))
		return now;
	before = settings->start_ticks;
	/* The quotient has 32 bits behind the point, for which the times are too long after some seconds. */
	now -= settings->start_ns;
	ticks -= before;
	while (now >> 32) {
		now >>= 1;
		ticks >>= 1;
	}
	if (ticks)
		__atomic_store_n(&settings->ns_per_tick, (now << 32) / ticks, __ATOMIC_RELAXED);
	return sys__now_ns();
}

static inline __u64 now_ns(void)
{
	struct inside_settings *settings = &process.header->settings;
	__u64 ticks;

	if (!settings->ns_per_tick || unlikely(sys_limits.no_ticks))
		return ask_now_ns(settings);
	ticks = processor__ticks() - settings->start_ticks;
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
		struct indexed *slot = &thread->index[i & mask];

		if (!slot->record || slot->record == record)
			return slot;
	}
}

/* From this size on an index has pages of its own, which are unmapped when it is replaced. Smaller
 * ones have none: with ten thousand threads the process would run out of mappings. */
#define OWN_PAGES_BYTES (16 << 10)

static size_t index_bytes(__u32 records_shift)
{
	return sizeof(struct indexed) * 2 << records_shift;
}

/* Builds the index anew after the table has moved and grown from @before, which is NULL or was
 * half as large. */
static bool index_again(struct thread *thread, const char *before)
{
	__u32 shift = thread->records.shift;

	if (before && thread->index && index_bytes(shift - 1) >= OWN_PAGES_BYTES)
		sys__unmap(thread->index, index_bytes(shift - 1));
	live_memory__forget(thread->live);
	thread->index = index_bytes(shift) < OWN_PAGES_BYTES
				? memory__take_private(index_bytes(shift))
				: sys__map_private(index_bytes(shift));
	if (!thread->index)
		return false;
	for (__u32 i = 0; i < 1U << shift; i++)
		if (entry_at(thread, i)->record)
			*index_slot(thread, entry_at(thread, i)->record) =
				(struct indexed){ entry_at(thread, i)->record, i };
	return true;
}

static struct inside_record *add_entry(struct thread *thread, __u64 stack, __u32 function,
				       __u32 record)
{
	const char *before = thread->records.entries;
	struct inside_record *entry;

	if (!table__reserve(&thread->records, process.samples ? &sampled_kind : &records_kind,
			    &thread->shared->records))
		return NULL;
	if ((thread->records.entries != before || !thread->index) &&
	    !index_again(thread, thread->records.entries != before ? before : NULL))
		return NULL;
	entry = table__first(&thread->records, process.record_bytes,
			     stack ? stack + function : record);
	while (entry->record)
		entry = table__next(&thread->records, process.record_bytes, entry);
	entry->stack = stack;
	entry->function = function;
	__atomic_store_n(&entry->record, record, __ATOMIC_RELEASE);
	thread->records.n++;
	*index_slot(thread, record) =
		(struct indexed){ record, ((char *)entry - thread->records.entries) /
						  process.record_bytes };
	return entry;
}

/* Adds an entry for a key that the thread does not have yet. Signals are blocked: a handler that
 * jumped out of this function would leave an index that does not match its table. */
static __attribute__((noinline)) struct inside_record *new_entry(struct thread *thread, __u64 stack,
								 __u32 function, __u32 record)
{
	struct inside_record *entry;
	__u64 signals;

	sys__block_signals(&signals);
	entry = add_entry(thread, stack, function, record);
	sys__restore_signals(signals);
	return entry;
}

/* Returns a new record number, or 0 if there are as many records as are allowed. */
static __u32 new_number(const struct thread *thread, __u64 stack, __u64 frames, __u32 function)
{
	__u32 most = process.header->settings.max_records, *n = &process.header->live.n_records;
	__u32 number;

	if (most && __atomic_load_n(n, __ATOMIC_RELAXED) >= most)
		return 0;
	number = __atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
	return unlikely(process.events) ? events__new_record(thread, stack, frames, function)
					: number;
}

static __attribute__((noinline)) struct inside_record *search_by_stack(struct thread *thread,
								       __u64 stack, __u32 function)
{
	struct inside_record *entry;
	__u64 frames = 0;
	__u32 record;

	if (thread->records.entries) {
		entry = table__first(&thread->records, process.record_bytes, stack + function);
		for (; entry->record;
		     entry = table__next(&thread->records, process.record_bytes, entry))
			if (entry->stack == stack && entry->function == function)
				return entry;
	}
	if (process.has_stacks)
		frames = stacks__publish(thread->walker, stack);
	if (process.has_stacks && !frames)
		return NULL;
	record = new_number(thread, stack, frames, function);
	return record ? new_entry(thread, stack, function, record) : NULL;
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
	const struct indexed *slot = thread->index ? index_slot(thread, record) : NULL;

	if (likely(slot && slot->record))
		return entry_at(thread, slot->at);
	return new_entry(thread, 0, 0, record);
}

/* To be called before an entry changes: notes the entry's share of the peak if a new peak
 * generation has begun. */
static inline void touch(struct ap_blocks *blocks)
{
	__u64 generation = __atomic_load_n(&process.header->live.generation, __ATOMIC_RELAXED);

	if (likely(blocks->generation == generation))
		return;
	ap_blocks__note_peak(blocks);
	blocks->generation = generation;
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

#define EACH_BYTE 0x0101010101010101ULL

/* Works like ap_blocks__slot(), but finds a tag that is there without a loop. */
static inline __u64 *slot_of_tag(struct ap_blocks *blocks, __u32 tag)
{
	__u64 others = blocks->tags ^ tag * EACH_BYTE;
	/* The lowest bit that is set here belongs to the first byte of @others that is 0. */
	__u64 same = (others - EACH_BYTE) & ~others & EACH_BYTE << 7;

	return likely(same) ? &blocks->slots[__builtin_ctzll(same) >> 3]
			    : ap_blocks__slot(blocks, tag);
}

static inline void add_to_histogram(struct thread *thread, struct ap_blocks *blocks,
				    __u32 first_tag, __u64 value, __u32 n)
{
	__u32 tag = first_tag + significant_bits(value);
	struct ap_histograms *wide;
	__u64 *slot = slot_of_tag(blocks, tag);

	if (likely(slot)) {
		counter__add(slot, n);
		return;
	}
	wide = wide_of(blocks);
	if (wide)
		counter__add(&wide->buckets[tag - 1], n);
	else
		stat__add(thread, AP_STAT_HISTOGRAMS_LOST, n);
}

static inline bool lifetime__has(const struct inside_lifetime *lifetime,
				 const struct ap_lifetime_key *key)
{
	return lifetime->key.record == key->record && lifetime->key.shift == key->shift &&
	       lifetime->key.born == key->born && lifetime->key.died == key->died;
}

/* Returns the entry of the key; NULL if there is no room. */
static __attribute__((noinline)) struct inside_lifetime *
find_lifetime(struct thread *thread, const struct ap_lifetime_key *key)
{
	struct inside_lifetime *lifetime;

	/* The pointer is cleared before entries move, since a signal handler may leave this
	 * function by a jump. */
	thread->last_lifetime = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!table__reserve(&thread->lifetimes, &lifetimes_kind, &thread->shared->lifetimes))
		return NULL;
	lifetime = table__first(&thread->lifetimes, sizeof(*lifetime), lifetime_hash_of(key));
	while (lifetime->lifetime.blocks && !lifetime__has(lifetime, key))
		lifetime = table__next(&thread->lifetimes, sizeof(*lifetime), lifetime);
	return lifetime;
}

static inline void count_lifetime(struct thread *thread, const struct ap_block *block, __u64 now)
{
	struct inside_live *live = &process.header->live;
	struct ap_lifetime_key key = ap_lifetime_key__of(block, process.header->settings.epoch_ns,
							 now, &live->epoch_shift);
	struct inside_lifetime *lifetime = thread->last_lifetime;
	__u64 n = block->weight, size_bytes = n * block->size_bytes;

	if (unlikely(!lifetime || !lifetime__has(lifetime, &key)))
		lifetime = find_lifetime(thread, &key);
	if (unlikely(!lifetime)) {
		stat__add(thread, AP_STAT_LIFETIMES_LOST, n);
		return;
	}
	thread->last_lifetime = lifetime;
	if (likely(lifetime->lifetime.blocks)) {
		counter__add(&lifetime->lifetime.size_bytes, size_bytes);
		counter__add(&lifetime->lifetime.blocks, n);
		return;
	}
	lifetime->key = key;
	lifetime->lifetime.size_bytes = size_bytes;
	thread->lifetimes.n++;
	__atomic_store_n(&lifetime->lifetime.blocks, n, __ATOMIC_RELEASE);
}

/* Returns whether the end is counted. */
static bool end_block(struct thread *thread, const struct ap_block *block, __u64 now,
		      enum ap_block_end how)
{
	struct inside_record *entry = entry_of_record(thread, block->record);
	__u64 n = block->weight, size_bytes = n * block->size_bytes;
	struct ap_blocks *blocks;

	if (!entry) {
		stat__add(thread, AP_STAT_DROPPED, n);
		return false;
	}
	blocks = blocks_of(entry);
	touch(blocks);
	ap_blocks__end(blocks, thread, block, n, size_bytes, how);
	live_sum__add(thread, -(__s64)n, -(__s64)size_bytes);
	if (how == AP_BLOCK_UNSEEN)
		return true;
	ap_blocks__end_by(blocks, block, thread->owner->number, n, how);
	if (thread__ends_temporary(thread, block))
		ap_blocks__end_temporary(blocks, thread, block, n, size_bytes);
	add_to_histogram(thread, blocks, AP_LIFETIME_TAG, now - block->birth_ns, n);
	count_lifetime(thread, block, now);
	return true;
}

static void end_and_log(struct thread *thread, const struct ap_block *block, __u64 address,
			__u64 now)
{
	bool is_counted = end_block(thread, block, now, AP_BLOCK_FREED);

	if (likely(!process.events))
		return;
	if (is_counted)
		event__log_end(thread, block, address, now);
	else
		events__lose();
}

static inline void log_call(struct thread *thread, enum ap_event_kind kind, struct live_mark mark,
			    __u64 address, __u64 size_bytes)
{
	const struct ap_block block = {
		.size_bytes = size_bytes,
		.birth_ns = now_ns(),
		.record = mark.record,
		.weight = mark.weight,
	};

	event__log_call(thread, kind, &block, address);
}

__u32 live__call(struct thread *thread, __u32 function, __u64 size_bytes, __u32 weight, __u64 stack)
{
	struct inside_record *entry = NULL;
	struct ap_blocks *blocks;

	/* A key is not 0. */
	if (thread__is_ready(thread))
		entry = entry_of_stack(thread, process.has_stacks ? stack : 1, function);
	stat__add(thread, AP_STAT_EVENTS, 1);
	if (!entry) {
		stat__add(thread, AP_STAT_LOST + memory__lost(), 1);
		return 0;
	}
	blocks = blocks_of(entry);
	counter__add(&blocks->calls, weight);
	counter__add_bytes(&blocks->asked_bytes, bytes_of(weight, size_bytes));
	if (unlikely(process.samples))
		estimate__add(&blocks->of_calls, weight, size_bytes);
	return entry->record;
}

/* Returns whether the block is followed. @move: the call is realloc; else NULL. */
static bool begin_block(struct thread *thread, struct live_mark mark, __u64 address,
			__u64 size_bytes, const struct live_move *move)
{
	const struct ap_block *old = move && move->has_old ? &move->old : NULL;
	struct event event = { 0 };
	struct ap_block block = {
		.size_bytes = size_bytes,
		.record = mark.record,
		.weight = mark.weight,
		.thread = thread->owner->number,
		.sequence = thread->owner->sequence + 1,
		.birth_ns = now_ns(),
	};
	struct ap_block stale;
	int err;

	if (unlikely(process.events))
		event = event__take(thread);
	err = blocks__put(address, &block, &stale);
	if (unlikely(err == -EEXIST)) {
		stat__add(thread, AP_STAT_UNMATCHED, stale.weight);
		end_block(thread, &stale, 0, AP_BLOCK_UNSEEN);
		if (process.events) {
			event__log_unseen(thread, &event, &stale, address, block.birth_ns);
			event = event__take(thread);
		}
		err = blocks__put(address, &block, &stale);
	}
	if (unlikely(process.events))
		event__log_begin(thread, &event, &block, address, err ? NULL : old,
				 old ? move->address : 0, !err);
	if (err)
		stat__add(thread,
			  AP_STAT_UNTRACKED +
				  (err == -ENOMEM ? AP_UNTRACKED_NO_ROOM : AP_UNTRACKED_LIVE_FULL),
			  mark.weight);
	return !err;
}

static void count_block(struct thread *thread, struct live_mark mark, __u64 size_bytes)
{
	const struct ap_block block = { .size_bytes = size_bytes, .weight = mark.weight };
	struct inside_record *entry = entry_of_record(thread, mark.record);
	__u64 n = mark.weight;
	struct ap_blocks *blocks;

	if (!entry)
		return;
	blocks = blocks_of(entry);
	touch(blocks);
	ap_blocks__begin(blocks, thread, &block, n, n * size_bytes);
	add_to_histogram(thread, blocks, AP_SIZE_TAG, size_bytes, n);
	live_sum__add(thread, n, n * size_bytes);
	ap_regions__begin_block(thread, size_bytes);
}

/* Counts @old, for which realloc has returned a block of @size_bytes, if it has grown. */
static void count_growth(struct thread *thread, const struct ap_block *old, struct live_mark mark,
			 __u64 size_bytes)
{
	const struct ap_block block = { .size_bytes = size_bytes,
					.record = mark.record,
					.thread = thread->owner->number };
	struct inside_record *entry;

	if (!ap_block__has_grown(old, &block))
		return;
	entry = entry_of_record(thread, mark.record);
	if (entry)
		ap_blocks__grow(blocks_of(entry), old->weight, old->weight * old->size_bytes);
}

static void fail(struct thread *thread, struct live_mark mark, __u64 size_bytes)
{
	struct inside_record *entry = mark.record ? entry_of_record(thread, mark.record) : NULL;

	if (!entry)
		return;
	ap_blocks__fail(blocks_of(entry), thread, mark.weight);
	if (unlikely(process.events))
		log_call(thread, AP_EVENT_FAILED, mark, 0, size_bytes);
}

void live__return(struct thread *thread, struct live_mark mark, __u64 address, __u64 size_bytes)
{
	bool added;

	if (!thread__is_ready(thread))
		return;
	if (!address) {
		fail(thread, mark, size_bytes);
		return;
	}
	added = mark.record && begin_block(thread, mark, address, size_bytes, NULL);
	thread->owner->sequence++;
	if (added)
		count_block(thread, mark, size_bytes);
}

static const struct live_mark mark_none = { 0, 1 };

static void count_unknown_free(struct thread *thread, __u32 function, __u64 address)
{
	/* With sampling an unknown block may be one that was not sampled. */
	if (process.samples)
		return;
	stat__add(thread, ap_stat__of_unknown_free(function, process.inherits), 1);
	if (unlikely(process.events))
		log_call(thread, AP_EVENT_NOOP, mark_none, address, 0);
}

void live__free(struct thread *thread, __u32 function, __u64 address, bool is_outside)
{
	struct ap_block block;

	if (!thread__is_ready(thread))
		return;
	if (likely(address && blocks__take(address, &block))) {
		end_and_log(thread, &block, address, now_ns());
		if (!is_outside)
			ap_regions__end_block(thread, block.size_bytes, AP_BLOCK_FREED);
		return;
	}
	if (is_outside)
		return;
	if (address) {
		count_unknown_free(thread, function, address);
		return;
	}
	stat__add(thread, AP_STAT_FREES_NULL, 1);
	if (unlikely(process.events))
		log_call(thread, AP_EVENT_NOOP, mark_none, 0, 0);
}

void live__move(struct live_move *move, __u64 address)
{
	move->address = address;
	move->has_old = address && blocks__take(address, &move->old);
	if (move->has_old)
		move->entry_ns = now_ns();
}

static void end_old(struct thread *thread, const struct live_move *move, enum ap_block_end how,
		    __u64 size_bytes, __u32 weight)
{
	__u64 old_bytes = move->has_old ? move->old.size_bytes : 0;

	/* The end of a block that has moved is logged with the new block. */
	if (move->has_old && how == AP_BLOCK_MOVED)
		end_block(thread, &move->old, move->entry_ns, how);
	else if (move->has_old)
		end_and_log(thread, &move->old, move->address, move->entry_ns);
	else if (!move->is_outside)
		count_unknown_free(thread, move->function, move->address);
	if (move->has_old && !move->is_outside)
		ap_regions__end_block(thread, old_bytes, how);
	if (how == AP_BLOCK_MOVED)
		ap_move__count(thread, weight, old_bytes, size_bytes);
}

void live__moved(struct thread *thread, const struct live_move *move, struct live_mark mark,
		 __u64 result, __u64 size_bytes, bool frees)
{
	struct ap_block stale;
	bool added;

	if (!thread__is_ready(thread))
		return;
	if (!result && move->address && !size_bytes) {
		if (mark.record)
			stat__add(thread, AP_STAT_RELEASED, mark.weight);
		if (mark.record && unlikely(process.events))
			log_call(thread, AP_EVENT_RELEASED, mark, 0, 0);
		end_old(thread, move, AP_BLOCK_FREED, 0, 0);
		return;
	}
	if (!result) {
		fail(thread, mark, size_bytes);
		if (frees && move->address)
			end_old(thread, move, AP_BLOCK_FREED, 0, 0);
		else if (move->has_old && blocks__put(move->address, &move->old, &stale))
			stat__add(thread, AP_STAT_DROPPED, move->old.weight);
		return;
	}
	added = mark.record && begin_block(thread, mark, result, size_bytes, move);
	if (move->address)
		end_old(thread, move, added ? AP_BLOCK_MOVED : AP_BLOCK_FREED, size_bytes,
			mark.weight);
	thread->owner->sequence++;
	if (!added)
		return;
	count_block(thread, mark, size_bytes);
	if (move->has_old)
		count_growth(thread, &move->old, mark, size_bytes);
}

void live__lose(struct thread *current, struct live_mark mark, const struct ap_block *ended)
{
	if (current && mark.record)
		stat__add(current, AP_STAT_UNTRACKED + AP_UNTRACKED_NESTED, mark.weight);
	if (current && ended)
		stat__add(current, AP_STAT_DROPPED, ended->weight);
	if (process.events && current && mark.record)
		events__lose();
	if (process.events && current && ended)
		events__lose();
}
