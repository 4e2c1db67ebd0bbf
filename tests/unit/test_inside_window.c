// SPDX-License-Identifier: GPL-3.0-or-later
/* The library of src/inside counts no calls while the measurement is paused, or outside of the function of --within. */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inside_host.h"
#include "measured_process.h"
#include "memory.h"
#include "sample_abi.h"

#define N_BLOCKS 100

static void *blocks[N_BLOCKS];

static void allocate(size_t size)
{
	for (int i = 0; i < N_BLOCKS; i++) {
		blocks[i] = inside_malloc(size);
		CHECK(blocks[i]);
	}
}

static void free_blocks(int from, int to)
{
	for (int i = from; i < to; i++)
		inside_free(blocks[i]);
}

/* Blocks from before end while it is closed, and those that are allocated then are not known. */
static void close_for_a_while(void)
{
	void *outside;

	allocate(24);
	memory__header()->gate = INSIDE_CLOSED;
	free_blocks(0, 40);
	blocks[40] = inside_realloc(blocks[40], 5000);
	outside = inside_malloc(24);
	CHECK(blocks[40] && outside && inside_calloc(1, 1));
	memory__header()->gate = INSIDE_OPEN;
	inside_free(outside);
	free_blocks(40, 50);
	memory__header()->gate = INSIDE_STOPPED;
	free_blocks(50, N_BLOCKS);
	allocate(24);
}

static void test_gate(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode };
		struct measured measured;
		__u64 sums[2] = { 0 };

		measure(&settings, close_for_a_while, &measured);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, N_BLOCKS);
		assert_int_equal(measured.results.functions[AP_CALLOC].calls, 0);
		assert_int_equal(measured.results.functions[AP_REALLOC].calls, 0);
		assert_int_equal(measured.results.functions[AP_FREE].calls, 11);
		assert_int_equal(preload__read_blocks(measured.preload, sum_block, sums, NULL), 0);
		assert_int_equal(sums[0], mode == INSIDE_LIVE ? N_BLOCKS - 50 : 0);
		if (mode == INSIDE_LIVE) {
			assert_int_equal(measured.results.stats[AP_STAT_FREES], 50);
			assert_int_equal(measured.results.stats[AP_STAT_FREES_UNKNOWN], 2);
		}
		measured__finish(&measured);
	}
}

/* Most blocks are not sampled, large ones all are. */
static void close_while_sampling(void)
{
	allocate(24);
	allocate(1 << 20);
	memory__header()->gate = INSIDE_CLOSED;
	free_blocks(0, 40);
	blocks[40] = inside_realloc(blocks[40], 5000);
	inside_free(inside_malloc(1));
	inside_free(NULL);
	memory__header()->gate = INSIDE_OPEN;
	free_blocks(40, N_BLOCKS);
	inside_free(NULL);
}

static void test_gate_with_sampling(void **state)
{
	struct inside_settings settings = { .mode = INSIDE_LIVE };
	struct measured measured;
	__u64 sums[2] = { 0 };

	ap_sample__configure(4096, &settings.sampling);
	measure(&settings, close_while_sampling, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, 2 * N_BLOCKS);
	assert_int_equal(preload__read_blocks(measured.preload, sum_block, sums, NULL), 0);
	/* A few of the small blocks may be sampled; they are never freed. */
	assert_true(sums[1] <= N_BLOCKS * 24);
	assert_true(measured.results.stats[AP_STAT_FREES] >= N_BLOCKS);
	assert_int_equal(measured.results.stats[AP_STAT_FREES_NULL], 1);
	measured__finish(&measured);
}

static void allocate_and_free(void)
{
	allocate(24);
	free_blocks(0, N_BLOCKS);
}

/* Each function of this program is that of --within, or none is. */
static void test_within(void **state)
{
	static struct ap_within within = { .n = 1, .ranges = { { .size = ~0ULL } } };

	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++)
		for (int is = 0; is < 2; is++) {
			const struct inside_settings settings = {
				.mode = mode, .stacks = 1, .within = 1, .wait_ms = 1
			};
			struct measured measured;
			__u64 n = is ? N_BLOCKS : 0;

			print_message("mode %d, within: %d\n", mode, is);
			measured__new(&settings, &measured);
			if (is)
				assert_int_equal(preload__set_within(measured.preload,
								     INSIDE_FIRST_MODULE, &within),
						 0);
			measured__run(&measured, allocate_and_free);
			measured__read(&measured);
			assert_int_equal(measured.results.functions[AP_MALLOC].calls, n);
			/* Where stacks are recorded, no stack of a free is walked. */
			assert_int_equal(measured.results.functions[AP_FREE].calls,
					 mode == INSIDE_COUNT ? n : 0);
			if (mode != INSIDE_COUNT)
				assert_int_equal(measured.results.stats[AP_STAT_EVENTS], n);
			/* Without unwind tables the stacks end before they are complete. */
			assert_int_equal(measured.results.stats[AP_STAT_UNDECIDED],
					 is ? 0 : N_BLOCKS);
			if (mode == INSIDE_LIVE)
				assert_int_equal(measured.results.stats[AP_STAT_FREES], n);
			measured__finish(&measured);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_gate_with_sampling),
		cmocka_unit_test(test_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
