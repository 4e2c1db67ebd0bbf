// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the counts of a running target up to a cut. If counts were reset at an earlier cut, only
 * those since then are read. */
#include "preload_engine_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "collector.h"

/* A thread's counter. @count is the part of the counter that is already in the profile, or was
 * forgotten. */
struct moved_count {
	__u64 stack;
	__u32 thread, function;
	struct ap_count count;
};

void moved_counts__release(struct moved_counts *moved)
{
	hash_table__release(&moved->index);
	free(moved->counts);
}

static bool is_counter(const void *owner, __u32 id, const void *key)
{
	const struct moved_count *count = &((const struct moved_counts *)owner)->counts[id - 1];
	const struct moved_count *wanted = key;

	return count->stack == wanted->stack && count->thread == wanted->thread &&
	       count->function == wanted->function;
}

/* Returns the entry of @key, which is added if it is new; NULL if there is no memory. */
static struct moved_count *get_moved(struct moved_counts *moved, const struct moved_count *key)
{
	__u64 hash = hash_mix(hash_mix(hash_seed(), key->stack),
			      (__u64)key->thread << 32 | key->function);
	__u32 id = hash_table__find(&moved->index, hash, is_counter, moved, key);

	if (id)
		return &moved->counts[id - 1];
	if (array__reserve(&moved->counts, &moved->room, moved->n + 1, sizeof(*moved->counts)) ||
	    hash_table__insert(&moved->index, hash, moved->n + 1))
		return NULL;
	moved->counts[moved->n] = *key;
	return &moved->counts[moved->n++];
}

/* Subtracts @part from *@sum, which contained it, unless a process has written nonsense. */
static void take_out(struct ap_count *sum, const struct ap_count *part)
{
	const __u64 *from = (const __u64 *)part;
	__u64 *into = (__u64 *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*into); i++)
		into[i] -= from[i] < into[i] ? from[i] : into[i];
}

/* A counter whose stack was not known when it was read. */
struct late_count {
	struct ap_count_key key;
	struct ap_count count;
	__u32 thread;
};

struct moving {
	struct preload_engine *engine;
	bool goes_on; /* another reading will follow */
	struct late_count *late;
	size_t n_late, late_room;
};

/* Moves the new part of a counter to the profile. Sets *@is_known to whether the profile has the
 * counter's stack. */
static int move(const struct moving *moving, const struct late_count *read, bool *is_known)
{
	const struct moved_count wanted = {
		.stack = read->key.stack,
		.thread = read->thread,
		.function = read->key.function,
	};
	struct preload_engine *engine = moving->engine;
	struct ap_count left = read->count;
	struct moved_count *moved = NULL;
	__u32 id = 0;
	int err;

	*is_known = true;
	if (moving->goes_on || engine->moved.n) {
		moved = get_moved(&engine->moved, &wanted);
		if (!moved)
			return -ENOMEM;
		take_out(&left, &moved->count);
	}
	if (!left.calls)
		return 0;
	err = collector__add_count(engine->collector, &read->key, &left, &id);
	if (!err && moved && id)
		moved->count = read->count;
	*is_known = id;
	return err;
}

static int move_count(void *context, __u32 thread, const struct ap_count_key *key,
		      const struct ap_count *count)
{
	const struct late_count read = { *key, *count, thread };
	struct moving *moving = context;
	bool is_known;
	int err = move(moving, &read, &is_known);

	if (err || is_known)
		return err;
	if (array__reserve(&moving->late, &moving->late_room, moving->n_late + 1,
			   sizeof(*moving->late)))
		return -ENOMEM;
	moving->late[moving->n_late++] = read;
	return 0;
}

/* Moves all counters. Processes publish a stack before they count under it, so stacks that come
 * between the two readings are known at the second. Counters whose stack is unknown then stay for
 * the next cut. */
int preload_engine__move_counts(struct preload_engine *engine, bool goes_on)
{
	struct moving moving = { .engine = engine, .goes_on = goes_on };
	bool is_known;
	int err = preload_engine__read_stacks(engine);

	if (!err)
		err = preload__read_counts(engine->preload, move_count, &moving);
	if (!err && moving.n_late)
		err = preload_engine__read_stacks(engine);
	for (size_t i = 0; i < moving.n_late && !err; i++)
		err = move(&moving, &moving.late[i], &is_known);
	free(moving.late);
	return err;
}

__u64 preload_engine__sum_stats(const struct preload_results *counted)
{
	__u64 sum = counted->n_programs + counted->n_threads;

	for (int i = 0; i < AP_STATS; i++)
		sum += counted->stats[i];
	return sum;
}

/* Returns the number of calls until the cut that are in the profile or known to be lost; for some
 * that was not known at the cut. */
static __u64 count_known(const struct preload_engine *engine)
{
	const __u64 *now = engine->at_cut.stats, *before = engine->forgotten.stats;
	__u64 known = before[AP_STAT_EVENTS] + collector__attributed(engine->collector) +
		      now[AP_STAT_NOT_SAMPLED] - before[AP_STAT_NOT_SAMPLED];

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		known += now[AP_STAT_LOST + reason] - before[AP_STAT_LOST + reason];
	return known;
}

static __u64 count_events(const struct preload_engine *engine)
{
	__u64 known = count_known(engine), events = engine->at_cut.stats[AP_STAT_EVENTS];

	return known > events ? known : events;
}

/* How often, and after how long, counters are read again: a thread that had begun a call at the
 * cut, and has not counted it, does so soon. */
#define TRIES	    3
#define A_MOMENT_US 1000

static int move_all(struct preload_engine *engine)
{
	int err = preload_engine__move_counts(engine, true);

	for (int i = 1;
	     i < TRIES && !err && count_known(engine) < engine->at_cut.stats[AP_STAT_EVENTS]; i++) {
		usleep(A_MOMENT_US);
		err = preload_engine__move_counts(engine, true);
	}
	return err;
}

int preload_engine__cut(struct engine *base, __u64 *cut_ns)
{
	struct preload_engine *engine = preload_engine__of(base);
	struct preload_results counted;
	int err = preload_engine__take_modules(engine);

	if (!err)
		err = preload_engine__read(engine, &counted);
	if (err)
		return err;
	preload_results__free(&engine->at_cut);
	engine->at_cut = counted;
	err = preload_engine__take_programs(engine, &counted);
	/* Blocks are in too many tables to be read at once: the snapshot reads them, and tries
	 * again if calls came meanwhile. */
	if (!err && engine->options.stacks && !engine->live)
		err = move_all(engine);
	engine->cut_ns = clock__now_ns();
	if (!err)
		*cut_ns = engine->cut_ns;
	return err;
}

void preload_engine__become_snapshot(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);

	engine->is_snapshot = true;
	/* Only the parent writes the log. */
	if (engine->events)
		preload_engine__log_results(engine, &engine->log_at_cut);
	engine->events = NULL;
}

static void subtract(__u64 *from, const __u64 *what, size_t n)
{
	for (size_t i = 0; i < n; i++)
		from[i] -= what[i] < from[i] ? what[i] : from[i];
}

/* Subtracts what was forgotten from the sums. Lists stay whole, since a program's number is its
 * index. */
void preload_engine__leave_out_forgotten(struct preload_engine *engine)
{
	const struct preload_results *before = &engine->forgotten;
	struct preload_results *now = &engine->counted;

	subtract((__u64 *)now->functions, (const __u64 *)before->functions,
		 sizeof(now->functions) / (sizeof(__u64)));
	subtract(now->counted, before->counted, AP_MAX_DEFINITIONS);
	subtract(now->stats, before->stats, AP_STATS);
	subtract(now->gaps, before->gaps, INSIDE_GAPS);
	if (now->regions && before->regions)
		subtract((__u64 *)now->regions, (const __u64 *)before->regions,
			 sizeof(*now->regions) / sizeof(__u64));
	subtract(&now->n_unfinished, &before->n_unfinished, 1);
	subtract(&now->n_damaged, &before->n_damaged, 1);
}

static __u64 count_ended(const struct preload_engine *engine)
{
	const struct preload_results *counted = &engine->at_cut;
	__u64 running = 0;

	for (size_t i = 0; i < counted->n_programs; i++)
		if (engine->programs[i] == PROGRAM_RUNS &&
		    !counted->programs[i].in_other_namespace &&
		    preload_engine__runs(engine, counted->programs[i].pid))
			running++;
	return preload_engine__count_processes(counted) - running;
}

void preload_engine__forget(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);
	struct preload_results at_cut = engine->at_cut;

	if (engine->options.stacks)
		at_cut.stats[AP_STAT_EVENTS] = count_events(engine);
	at_cut.programs = NULL;
	at_cut.refused = NULL;
	/* The lists of the cut are not read any more. */
	engine->at_cut.regions = NULL;
	free(engine->forgotten.regions);
	engine->n_forgotten_processes = count_ended(engine);
	engine->events_before = engine->forgotten.stats[AP_STAT_EVENTS];
	engine->forgotten = at_cut;
	if (engine->collector)
		collector__forget(engine->collector);
}

/* Lets the forgotten calls count as events again, without any other count, so that they are
 * unaccounted. */
void preload_engine__lose_forgotten(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);
	__u64 *forgotten = &engine->forgotten.stats[AP_STAT_EVENTS];

	/* This reading of the counters may be the last one, so it is corrected, too. */
	engine->counted.stats[AP_STAT_EVENTS] += *forgotten - engine->events_before;
	*forgotten = engine->events_before;
}

int preload_engine__reset(struct engine *base, __u64 *cut_ns)
{
	int err = preload_engine__cut(base, cut_ns);

	if (!err)
		preload_engine__forget(base);
	return err;
}

int preload_engine__collect_snapshot(struct preload_engine *engine)
{
	struct preload_results now;
	int err = 0;

	engine->counted = engine->at_cut;
	engine->at_cut = (struct preload_results){ 0 };
	if (engine->live) {
		err = preload_engine__stop_live(engine);
		if (!err)
			err = preload_engine__read_stacks(engine);
		if (!err)
			err = preload_engine__collect_live(engine);
		if (!err)
			err = preload__read(engine->preload, &now);
		if (err)
			return err;
		if (preload_engine__sum_stats(&now) != preload_engine__sum_stats(&engine->counted))
			err = -EAGAIN;
		preload_results__free(&now);
	}
	preload_engine__leave_out_forgotten(engine);
	return err;
}
