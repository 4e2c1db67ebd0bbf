// SPDX-License-Identifier: GPL-3.0-or-later
/* Blocks that the library of src/inside follows: their ends, those that it has not seen, their sizes, and the regions that they are in. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "allocprof.h"
#include "blocks.h"
#include "inside_host.h"
#include "live.h"
#include "measured_process.h"
#include "objects.h"

#define N_BLOCKS 50

static void *blocks[N_BLOCKS];

static void measure_live(void (*program)(void), struct measured *out)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE, .regions = 1 };

	measure(&settings, program, out);
}

static __u64 n_live(const struct measured *measured)
{
	__u64 sums[2] = { 0 };

	assert_int_equal(preload__read_blocks(measured->preload, sum_block, sums, NULL), 0);
	return sums[0];
}

/* The end of a block was not seen, as it was by a system call of the program's own: there is another one at its address. */
static void begin_at_same_address(void)
{
	static char memory[64];
	struct ap_block block;

	blocks[0] = inside_malloc(24);
	CHECK(blocks__take((__u64)blocks[0], &block));
	CHECK(!blocks__put((__u64)memory, &block, &block));
	live__return(self, (struct live_mark){ block.record, 1 }, (__u64)memory, 30);
	live__free(self, AP_FREE, (__u64)memory, false);
}

static void test_unseen_end(void **state)
{
	struct measured measured;

	measure_live(begin_at_same_address, &measured);
	assert_int_equal(n_live(&measured), 0);
	assert_int_equal(measured.results.stats[AP_STAT_UNMATCHED], 1);
	assert_int_equal(measured.results.stats[AP_STAT_ALLOCATIONS], 2);
	measured__finish(&measured);
}

static int note_kind(void *context, __u32 program, const struct inside_event *event)
{
	char *kinds = context;

	kinds[strlen(kinds)] = 'a' + event->kind;
	return 0;
}

static void test_unseen_end_is_an_event(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE,
						  .events = INSIDE_EVENTS,
						  .event_parts = 1 };
	const char expected[] = { 'a' + AP_EVENT_ALLOC, 'a' + AP_EVENT_UNSEEN, 'a' + AP_EVENT_ALLOC,
				  'a' + AP_EVENT_FREE, 0 };
	char kinds[32] = "";
	struct preload_events *events;
	struct measured measured;

	measure(&settings, begin_at_same_address, &measured);
	events = preload_events__new(measured.preload, note_kind, kinds);
	assert_non_null(events);
	assert_int_equal(preload_events__finish(events, 0, false), 0);
	assert_string_equal(kinds, expected);
	assert_int_equal(preload_events__lost(events), 0);
	preload_events__free(events);
	measured__finish(&measured);
}

/* A block whose begin was not seen, from the allocator that the library calls. */
static void *allocate_unseen(void)
{
	return ((void *(*)(size_t))next__get(NEXT_malloc))(10);
}

static void allocate_and_move(void)
{
	void *block = inside_malloc(100), *moved;

	/* Nobody can have so much. The block is as it was. */
	CHECK(block && !inside_realloc(block, SIZE_MAX / 4));
	CHECK(!inside_reallocarray(block, SIZE_MAX, 2));
	moved = inside_realloc(block, 200);
	CHECK(moved);
	inside_free(allocate_unseen());
	inside_free(inside_realloc(allocate_unseen(), 300));
	inside_free(moved);
	/* C leaves open what this does; here it frees. */
	CHECK(!inside_realloc(inside_malloc(5), 0));
}

static void test_moved(void **state)
{
	struct measured measured;
	const __u64 *stats = measured.results.stats;

	measure_live(allocate_and_move, &measured);
	assert_int_equal(n_live(&measured), 0);
	assert_int_equal(stats[AP_STAT_FAILED], 2);
	assert_int_equal(stats[AP_STAT_RELEASED], 1);
	assert_int_equal(stats[AP_STAT_FREES_UNKNOWN], 2);
	assert_int_equal(stats[AP_STAT_ALLOCATIONS], 4);
	assert_int_equal(stats[AP_STAT_FREES], 4);
	assert_int_equal(stats[AP_STAT_REALLOCATIONS], 2);
	/* The old size of an unknown block counts as 0. */
	assert_int_equal(stats[AP_STAT_GROWN_BYTES], 100 + 300);
	measured__finish(&measured);
}

static void *free_blocks(void *unused)
{
	for (int i = 0; i < N_BLOCKS; i++)
		inside_free(blocks[i]);
	return NULL;
}

static void free_in_other_thread(void)
{
	pthread_t thread;

	for (int i = 0; i < N_BLOCKS; i++)
		blocks[i] = inside_malloc(24);
	CHECK(!pthread_create(&thread, NULL, free_blocks, NULL));
	CHECK(!pthread_join(thread, NULL));
}

static void test_freed_by_other_thread(void **state)
{
	struct measured measured;
	struct preload_live live;

	measure_live(free_in_other_thread, &measured);
	assert_int_equal(n_live(&measured), 0);
	assert_int_equal(measured.results.stats[AP_STAT_FREES], N_BLOCKS);
	/* Both threads' shares are of one record. */
	assert_int_equal(preload__read_live(measured.preload, &live), 0);
	assert_int_equal(live.n_records, 1);
	assert_int_equal(live.records[0].blocks.allocations, N_BLOCKS);
	assert_int_equal(live.records[0].blocks.frees, N_BLOCKS);
	preload_live__free(&live);
	measured__finish(&measured);
}

#define N_SIZES 22

/* Sizes of all orders, more than a record has buckets for. */
static void allocate_all_sizes(void)
{
	for (int i = 0; i < N_SIZES; i++)
		inside_free(inside_malloc((size_t)1 << i));
}

static void test_many_sizes(void **state)
{
	struct measured measured;
	struct preload_live live;
	__u64 n = 0;

	measure_live(allocate_all_sizes, &measured);
	assert_int_equal(preload__read_live(measured.preload, &live), 0);
	assert_int_equal(live.n_records, 1);
	assert_non_null(live.records[0].more);
	for (size_t i = 0; i < ARRAY_SIZE(live.records[0].more->buckets); i++)
		n += live.records[0].more->buckets[i];
	assert_true(n > 0 && n < 2 * N_SIZES);
	assert_int_equal(measured.results.stats[AP_STAT_HISTOGRAMS_LOST], 0);
	preload_live__free(&live);
	measured__finish(&measured);
}

static void work_in_region(void)
{
	blocks[0] = inside_malloc(10);
	ALLOCPROF_BEGIN("region");
	blocks[1] = inside_malloc(100);
	inside_free(blocks[0]);
	inside_free(inside_malloc(1000));
	ALLOCPROF_END("region");
	inside_free(blocks[1]);
}

static void test_regions(void **state)
{
	struct measured measured;
	const struct inside_region_counts *counts;

	measure_live(work_in_region, &measured);
	assert_non_null(measured.results.regions);
	counts = &measured.results.regions->sets[1];
	assert_int_equal(counts->functions[AP_MALLOC].calls, 2);
	assert_int_equal(counts->stats[AP_STAT_ALLOCATIONS], 2);
	assert_int_equal(counts->stats[AP_STAT_ALLOCATED_BYTES], 1100);
	assert_int_equal(counts->stats[AP_STAT_DEALLOCATIONS], 2);
	assert_int_equal(counts->stats[AP_STAT_FREED_BYTES], 1010);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen_end), cmocka_unit_test(test_unseen_end_is_an_event),
		cmocka_unit_test(test_moved),	   cmocka_unit_test(test_freed_by_other_thread),
		cmocka_unit_test(test_many_sizes), cmocka_unit_test(test_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
