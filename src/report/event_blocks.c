// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Replays a log of events. Blocks that have ended are judged some at a time and mostly forgotten, so that memory follows
 * what is alive and what is asked for, not the length of the log.
 */
#include "event_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "event_log.h"
#include "filter_internal.h"
#include "hash_table.h"
#include "profile.h"

#define JUDGED_AT_ONCE (1 << 18)
/* Bounds for what is kept of a log, by the bytes that were read of it. */
#define MEMORY_AT_LEAST (256ULL << 20)
#define MEMORY_PER_BYTE 1024

/* A block that is alive, in a list of those of its address space. */
struct live {
	struct event_block block; /* id 0: this entry is free */
	__u32 space;		  /* index + 1; 0: unknown */
	__u32 previous, next;	  /* indexes + 1 */
};

struct space {
	__u32 number;
	__u32 first; /* index + 1 of a live block */
};

/* A thread by its id, and the site of its last allocation, which has its name. */
struct named {
	__u32 id, site;
};

struct replay {
	struct event_log_reader *log;
	const struct profile *profile;
	const struct stack_groups *groups;
	const struct event_blocks_options *options;
	struct block_filter filter;
	__u64 seed;	 /* of hashes */
	int *suppressed; /* by stack's id - 1: -1, or what hides it; NULL: nothing does */
	__u64 start_ns;
	bool has_started;
	struct hash_table counts; /* ids of counts */
	__u32 *sites;		  /* by id - 1: count + 1; 0: it was not looked up */
	struct live *live;
	__u32 free; /* index + 1 of a free entry, which names the next one */
	struct space *spaces;
	struct named *threads;
	/* Blocks that are to be judged. Until then these, as the live ones, have sites of the log in the place of counts, and of
	 * the thread that ended them: the log may say later which stack a site has. */
	struct event_block *pending;
	/* Its slots of blocks that have ended are stale until it is made anew. */
	struct hash_table index;
	struct hash_table by_number, by_id; /* spaces and threads: index + 1 */
	size_t n_sites, n_live, n_alive, n_spaces, n_threads, n_pending;
	size_t judge_at;
	size_t n_given; /* blocks that the caller got */
	size_t live_room, spaces_room, threads_room, pending_room, list_room;
	struct event_blocks found;
};

static const char *const fates[BLOCK_FATES] = {
	[BLOCK_ALIVE] = "alive",
	[BLOCK_FREED] = "freed",
	[BLOCK_REALLOCATED] = "reallocated",
	[BLOCK_UNSEEN] = "unseen",
	[BLOCK_DISCARDED] = "discarded",
};

static const char *const sorts[BLOCKS_SORTS] = {
	[BLOCKS_LARGEST] = "bytes",
	[BLOCKS_OLDEST] = "oldest",
	[BLOCKS_LONGEST] = "lifetime",
};

const char *block_fate__name(enum block_fate fate)
{
	return fates[fate];
}

const char *block_sort__name(enum block_sort sort)
{
	return sorts[sort];
}

int block_sort__by_name(const char *name)
{
	for (int i = 0; i < BLOCKS_SORTS; i++)
		if (!strcmp(name, sorts[i]))
			return i;
	return -ENOENT;
}

static int fail_for_memory(struct error *error)
{
	return error__set(error, -ENOMEM, "cannot read the blocks: out of memory");
}

/* The calls of the log and those of the profile have these in common. */
struct call {
	__u32 process, stack;
	const char *thread, *function;
};

static struct call call_of(const struct profile *profile, const struct profile_count *count)
{
	return (struct call){
		.process = count->process,
		.stack = count->stack,
		.thread = profile->threads[count->thread - 1].name,
		.function = definition_names__function(&profile->definitions, count->function),
	};
}

static __u64 hash_call(__u64 seed, const struct call *call)
{
	__u64 hash = hash_mix(hash_mix(seed, call->process), call->stack);

	return hash_string(hash_string(hash, call->thread), call->function);
}

static bool is_call(const void *owner, __u32 id, const void *key)
{
	const struct profile *profile = owner;
	const struct call *wanted = key, call = call_of(profile, &profile->counts[id - 1]);

	return call.process == wanted->process && call.stack == wanted->stack &&
	       !strcmp(call.thread, wanted->thread) && !strcmp(call.function, wanted->function);
}

static int index_counts(struct replay *replay)
{
	const struct profile *profile = replay->profile;
	int err = 0;

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		struct call call = call_of(profile, &profile->counts[i]);
		__u64 hash = hash_call(replay->seed, &call);

		if (!hash_table__find(&replay->counts, hash, is_call, profile, &call))
			err = hash_table__insert(&replay->counts, hash, i + 1);
	}
	return err;
}

/* Stores the count of the site @id; 0 if the profile has none. */
static int count_of(struct replay *replay, __u32 id, __u32 *count)
{
	const struct event_log_site *site = event_log_reader__site(replay->log, id);
	struct call call;

	*count = 0;
	if (!site || !site->stack)
		return 0;
	if (id > replay->n_sites &&
	    array__reserve_zeroed(&replay->sites, &replay->n_sites, id, sizeof(*replay->sites)))
		return -ENOMEM;
	if (!replay->sites[id - 1]) {
		call = (struct call){ site->process, site->stack, site->thread, site->function };
		replay->sites[id - 1] =
			1 + hash_table__find(&replay->counts, hash_call(replay->seed, &call),
					     is_call, replay->profile, &call);
	}
	*count = replay->sites[id - 1] - 1;
	return 0;
}

static bool is_block(const void *owner, __u32 id, const void *key)
{
	const struct replay *replay = owner;

	return replay->live[id - 1].block.id == *(const __u64 *)key;
}

static __u32 find_block(const struct replay *replay, __u64 id)
{
	return id ? hash_table__find(&replay->index, hash_mix(replay->seed, id), is_block, replay,
				     &id)
		  : 0;
}

static int index_block(struct replay *replay, __u32 entry)
{
	__u64 id = replay->live[entry - 1].block.id;

	return hash_table__insert(&replay->index, hash_mix(replay->seed, id), entry);
}

/* Drops the slots of blocks that have ended, when most are of such. */
static int tidy_index(struct replay *replay)
{
	int err = 0;

	/* All entries are gone through, also free ones. */
	if (replay->index.n_used < 2 * replay->n_alive + replay->n_live + 4096)
		return 0;
	hash_table__release(&replay->index);
	for (size_t i = 0; i < replay->n_live && !err; i++)
		if (replay->live[i].block.id)
			err = index_block(replay, i + 1);
	return err;
}

static bool is_space(const void *owner, __u32 id, const void *key)
{
	const struct replay *replay = owner;

	return replay->spaces[id - 1].number == *(const __u32 *)key;
}

static __u32 find_space(const struct replay *replay, __u32 number)
{
	return hash_table__find(&replay->by_number, hash_mix(replay->seed, number), is_space,
				replay, &number);
}

/* Stores index + 1 of the address space of @process; 0 if it is unknown. */
static int space_of(struct replay *replay, __u32 process, __u32 *space)
{
	const struct event_log_process *one = event_log_reader__process(replay->log, process);
	int err;

	*space = one && one->space ? find_space(replay, one->space) : 0;
	if (!one || !one->space || *space)
		return 0;
	err = array__reserve(&replay->spaces, &replay->spaces_room, replay->n_spaces + 1,
			     sizeof(*replay->spaces));
	if (err)
		return err;
	replay->spaces[replay->n_spaces++] = (struct space){ .number = one->space };
	*space = replay->n_spaces;
	return hash_table__insert(&replay->by_number, hash_mix(replay->seed, one->space), *space);
}

static bool is_thread(const void *owner, __u32 id, const void *key)
{
	const struct replay *replay = owner;

	return replay->threads[id - 1].id == *(const __u32 *)key;
}

static struct named *find_thread(const struct replay *replay, __u32 id)
{
	__u32 at = hash_table__find(&replay->by_id, hash_mix(replay->seed, id), is_thread, replay,
				    &id);

	return at ? &replay->threads[at - 1] : NULL;
}

static int name_thread(struct replay *replay, __u32 id, __u32 site)
{
	struct named *named = find_thread(replay, id);
	int err;

	if (named) {
		named->site = site;
		return 0;
	}
	err = array__reserve(&replay->threads, &replay->threads_room, replay->n_threads + 1,
			     sizeof(*replay->threads));
	if (err)
		return err;
	replay->threads[replay->n_threads++] = (struct named){ id, site };
	return hash_table__insert(&replay->by_id, hash_mix(replay->seed, id), replay->n_threads);
}

static __u64 since_start(struct replay *replay, __u64 time_ns)
{
	if (!replay->has_started)
		replay->start_ns = time_ns;
	replay->has_started = true;
	return time_ns > replay->start_ns ? time_ns - replay->start_ns : 0;
}

static int compare(__u64 a, __u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_births(const void *left, const void *right)
{
	const struct event_block *a = left, *b = right;

	return compare(a->born_ns, b->born_ns) ?: compare(a->id, b->id);
}

static int compare_sizes(const void *left, const void *right)
{
	const struct event_block *a = left, *b = right;

	return compare(b->size_bytes, a->size_bytes) ?: compare_births(left, right);
}

/* Returns by how long the block's life was known, but for the alive ones, which outlive all others. */
static __u64 life_of(const struct event_block *block)
{
	return block->fate == BLOCK_ALIVE ? ~0ULL - block->born_ns
					  : block->died_ns - block->born_ns;
}

static int compare_lives(const void *left, const void *right)
{
	return compare(life_of(right), life_of(left)) ?: compare_births(left, right);
}

/* Keeps the first of the selected blocks. */
static void sort_found(struct replay *replay)
{
	static int (*const compares[BLOCKS_SORTS])(const void *, const void *) = {
		[BLOCKS_LARGEST] = compare_sizes,
		[BLOCKS_OLDEST] = compare_births,
		[BLOCKS_LONGEST] = compare_lives,
	};
	struct event_blocks *found = &replay->found;

	if (found->n)
		qsort(found->list, found->n, sizeof(*found->list), compares[replay->options->sort]);
	if (found->n > replay->options->most) {
		found->n = replay->options->most;
		found->is_cut = true;
	}
}

static __u64 multiply(__u64 a, __u64 b)
{
	__u64 product;

	return __builtin_mul_overflow(a, b, &product) ? PROFILE_MAX : product;
}

static int select_block(struct replay *replay, const struct event_block *block)
{
	struct event_blocks *found = &replay->found;

	found->blocks = profile__add_up(found->blocks, block->weight);
	found->size_bytes =
		profile__add_up(found->size_bytes, multiply(block->weight, block->size_bytes));
	if (replay->options->each) {
		replay->n_given++;
		return replay->options->each(replay->options->context, block);
	}
	if (found->n / 2 >= replay->options->most && found->n >= JUDGED_AT_ONCE)
		sort_found(replay);
	if (array__reserve(&found->list, &replay->list_room, found->n + 1, sizeof(*found->list)))
		return -ENOMEM;
	found->list[found->n++] = *block;
	return 0;
}

static bool is_hidden(const struct replay *replay, const struct event_block *block)
{
	const struct event_blocks_options *options = replay->options;
	__u32 stack = replay->profile->counts[block->count - 1].stack;

	return (replay->suppressed && replay->suppressed[stack - 1] >= 0) ||
	       (options->has_address && block->address != options->address &&
		options->address - block->address >= block->size_bytes);
}

/* Puts counts and a thread in the place of the sites that the replay notes there. */
static int resolve(struct replay *replay, struct event_block *block)
{
	__u32 ended;
	int err = count_of(replay, block->count, &block->count);

	if (!err)
		err = count_of(replay, block->next_count, &block->next_count);
	if (!err)
		err = count_of(replay, block->ended_thread, &ended);
	if (!err)
		block->ended_thread = ended ? replay->profile->counts[ended - 1].thread : 0;
	return err;
}

/* Returns whether the log may still say which stack the site @id has. */
static bool is_unsaid(const struct replay *replay, __u32 id)
{
	const struct event_log_site *site = event_log_reader__site(replay->log, id);

	return site && !site->stack;
}

/* Moves those of the pending blocks to the front that are to be judged, and the @n_waiting behind them whose stacks the log
 * has not said yet. */
static int choose_pending(struct replay *replay, bool is_end, size_t *n_waiting)
{
	struct event_block *pending = replay->pending;
	size_t n = 0, all = replay->n_pending;

	*n_waiting = 0;
	for (size_t i = 0; i < all; i++) {
		struct event_block block = pending[i];

		if (!is_end &&
		    (is_unsaid(replay, block.count) || is_unsaid(replay, block.next_count) ||
		     is_unsaid(replay, block.ended_thread))) {
			pending[n + (*n_waiting)++] = block;
			continue;
		}
		if (resolve(replay, &block))
			return -ENOMEM;
		if (!block.count)
			replay->found.unknown =
				profile__add_up(replay->found.unknown, block.weight);
		if (!block.count || is_hidden(replay, &block))
			continue;
		pending[n + *n_waiting] = pending[n];
		pending[n++] = block;
	}
	replay->n_pending = n;
	return 0;
}

static int select_pending(struct replay *replay, struct error *error)
{
	struct block_filter *filter = &replay->filter;
	const struct where_data data = {
		.profile = replay->profile,
		.groups = replay->groups,
		.clocks = filter->clocks,
		.exit_frees = filter->exit_frees,
		.blocks = replay->pending,
		.n_blocks = replay->n_pending,
	};
	int err = replay->n_pending ? conditions__evaluate(&filter->conditions, &data, error) : 0;

	for (size_t i = 0; i < replay->n_pending && !err; i++)
		if (conditions__answer(&filter->conditions, WHERE_BLOCKS, i) == YES)
			err = select_block(replay, &replay->pending[i]) ? fail_for_memory(error)
									: 0;
	return err;
}

static int judge(struct replay *replay, bool is_end, struct error *error)
{
	size_t n_waiting;
	int err = choose_pending(replay, is_end, &n_waiting) ? fail_for_memory(error)
							     : select_pending(replay, error);

	if (err)
		return err;
	if (n_waiting)
		memmove(replay->pending, replay->pending + replay->n_pending,
			n_waiting * sizeof(*replay->pending));
	replay->n_pending = n_waiting;
	/* A log whose stacks are never known must not be gone through again for each of its blocks. */
	replay->judge_at = 2 * n_waiting + JUDGED_AT_ONCE;
	return 0;
}

/* Takes a block that has ended, or is alive at the end. */
static int put(struct replay *replay, const struct event_block *block, struct error *error)
{
	replay->found.logged = profile__add_up(replay->found.logged, block->weight);
	if (array__reserve(&replay->pending, &replay->pending_room, replay->n_pending + 1,
			   sizeof(*replay->pending)))
		return fail_for_memory(error);
	replay->pending[replay->n_pending++] = *block;
	return replay->n_pending < replay->judge_at ? 0 : judge(replay, false, error);
}

static void unlink_live(struct replay *replay, struct live *live)
{
	if (live->previous)
		replay->live[live->previous - 1].next = live->next;
	else if (live->space)
		replay->spaces[live->space - 1].first = live->next;
	if (live->next)
		replay->live[live->next - 1].previous = live->previous;
}

/* Ends a live block. */
static int end(struct replay *replay, __u32 entry, enum block_fate fate, __u64 time_ns,
	       struct error *error)
{
	struct live *live = &replay->live[entry - 1];
	struct event_block block = live->block;

	block.fate = fate;
	block.died_ns = since_start(replay, time_ns);
	/* Events of different threads may be out of order. */
	if (block.died_ns < block.born_ns)
		block.died_ns = block.born_ns;
	unlink_live(replay, live);
	*live = (struct live){ .next = replay->free };
	replay->free = entry;
	replay->n_alive--;
	return put(replay, &block, error);
}

static int begin(struct replay *replay, const struct event_log_event *event)
{
	struct live *live;
	__u32 space, entry;
	int err = space_of(replay, event->process, &space);

	if (!err && !replay->free)
		err = array__reserve(&replay->live, &replay->live_room, replay->n_live + 1,
				     sizeof(*replay->live));
	if (err)
		return err;
	entry = replay->free ?: ++replay->n_live;
	live = &replay->live[entry - 1];
	if (replay->free)
		replay->free = live->next;
	*live = (struct live){
		.block = {
			.id = event->id,
			.address = event->address,
			.size_bytes = event->size_bytes,
			.born_ns = since_start(replay, event->time_ns),
			.weight = event->weight,
			.count = event->site,
			.thread = event->thread,
		},
		.space = space,
		.next = space ? replay->spaces[space - 1].first : 0,
	};
	if (live->next)
		replay->live[live->next - 1].previous = entry;
	if (space)
		replay->spaces[space - 1].first = entry;
	replay->n_alive++;
	err = index_block(replay, entry);
	return err ?: tidy_index(replay);
}

/* Notes who ends a block, and how. */
static void note_end(struct replay *replay, __u32 entry, const struct event_log_event *event)
{
	struct event_block *block = &replay->live[entry - 1].block;
	const struct named *named = find_thread(replay, event->thread);

	block->temporary = event->temporary;
	block->ended_by = event->thread;
	block->ended_thread = named ? named->site : 0;
	if (event->kind != EVENT_LOG_REALLOC)
		return;
	block->next_address = event->address;
	block->next_bytes = event->size_bytes;
	block->next_count = event->site;
}

/* A log of equal events is small, and what its blocks need is not. Of a recording each event takes a
 * byte at the least, since the time goes on between two. */
static int check_size(const struct replay *replay, struct error *error)
{
	__u64 bytes = replay->live_room * sizeof(*replay->live) +
		      replay->threads_room * sizeof(*replay->threads) +
		      replay->pending_room * sizeof(*replay->pending) +
		      replay->list_room * sizeof(*replay->found.list) +
		      replay->n_given * replay->options->each_bytes;
	__u64 most = MEMORY_AT_LEAST + MEMORY_PER_BYTE * event_log_reader__read_bytes(replay->log);

	return bytes <= most
		       ? 0
		       : error__set(error, -EFBIG,
				    "the blocks of the event log need more than %llu MiB after "
				    "its first %llu bytes; it is damaged, or made to fill the "
				    "memory: record again",
				    most >> 20, event_log_reader__read_bytes(replay->log));
}

static int take_event(struct replay *replay, const struct event_log_event *event,
		      struct error *error)
{
	static const enum block_fate ends[AP_EVENT_KINDS] = {
		[AP_EVENT_FREE] = BLOCK_FREED,
		[AP_EVENT_UNSEEN] = BLOCK_UNSEEN,
		[EVENT_LOG_REALLOC] = BLOCK_REALLOCATED,
	};
	bool begins = event->kind == AP_EVENT_ALLOC || event->kind == EVENT_LOG_REALLOC;
	__u32 entry;
	int err = 0;

	/* A block is known by its id alone, so one that begins twice ends before. */
	entry = begins || ends[event->kind] ? find_block(replay, event->id) : 0;
	if (begins && event->site && name_thread(replay, event->thread, event->site))
		return fail_for_memory(error);
	if (entry) {
		note_end(replay, entry, event);
		err = end(replay, entry, ends[event->kind] ?: BLOCK_UNSEEN, event->time_ns, error);
	}
	if (!err && begins && event->id && begin(replay, event))
		err = fail_for_memory(error);
	return err ?: check_size(replay, error);
}

/* Ends the blocks of an address space that an exec has ended. */
static int discard(struct replay *replay, const struct event_log_process *process,
		   struct error *error)
{
	__u32 space = process->ended_space ? find_space(replay, process->ended_space) : 0;
	int err = 0;

	while (space && !err && replay->spaces[space - 1].first)
		err = end(replay, replay->spaces[space - 1].first, BLOCK_DISCARDED,
			  process->time_ns, error);
	return err;
}

static int take_item(struct replay *replay, const struct event_log_item *item, struct error *error)
{
	if (item->what == EVENT_LOG_EVENT)
		return take_event(replay, &item->event, error);
	return item->what == EVENT_LOG_PROCESS ? discard(replay, &item->process, error) : 0;
}

static int replay_all(struct replay *replay, struct error *error)
{
	struct event_log_item item;
	int more, err = 0;

	while (!err && (more = event_log_reader__next(replay->log, &item, error)) > 0)
		err = take_item(replay, &item, error);
	if (err || more)
		return err ?: more;
	for (size_t i = 0; i < replay->n_live && !err; i++)
		if (replay->live[i].block.id)
			err = put(replay, &replay->live[i].block, error);
	return err ?: judge(replay, true, error);
}

static void release(struct replay *replay)
{
	block_filter__release(&replay->filter);
	hash_table__release(&replay->counts);
	hash_table__release(&replay->index);
	hash_table__release(&replay->by_number);
	hash_table__release(&replay->by_id);
	free(replay->suppressed);
	free(replay->sites);
	free(replay->live);
	free(replay->spaces);
	free(replay->threads);
	free(replay->pending);
	event_blocks__release(&replay->found);
}

static int prepare(struct replay *replay, struct error *error)
{
	const struct suppressions *suppressions = replay->options->filter->suppressions;
	int err = block_filter__prepare(&replay->filter, replay->profile, replay->groups,
					replay->options->filter, error);

	if (err)
		return err;
	if (suppressions)
		replay->suppressed = filter__suppressed_stacks(replay->profile, suppressions);
	if ((suppressions && !replay->suppressed) || index_counts(replay))
		return fail_for_memory(error);
	replay->has_started = profile__meta(replay->profile, "events_start_ns");
	replay->start_ns = profile__meta_number(replay->profile, "events_start_ns");
	return 0;
}

int event_blocks__read(struct event_log_reader *log, const struct profile *profile,
		       const struct stack_groups *groups,
		       const struct event_blocks_options *options, struct event_blocks *out,
		       struct error *error)
{
	_cleanup_(release) struct replay replay = {
		.log = log,
		.profile = profile,
		.groups = groups,
		.options = options,
		.seed = hash_seed(),
		.judge_at = JUDGED_AT_ONCE,
	};
	int err = prepare(&replay, error);

	if (!err)
		err = replay_all(&replay, error);
	if (err)
		return err;
	sort_found(&replay);
	*out = replay.found;
	replay.found = (struct event_blocks){ 0 };
	return 0;
}

void event_blocks__release(struct event_blocks *blocks)
{
	free(blocks->list);
	*blocks = (struct event_blocks){ 0 };
}
