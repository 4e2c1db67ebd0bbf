// SPDX-License-Identifier: GPL-3.0-or-later
/* The table of live blocks of src/inside, and with sampling what says without a look into it that a block is not there. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "memory.h"
#include "sys.h"

#define N_ADDRESSES 4096
#define N_THREADS   4

/* Blocks this far apart share a count. */
#define SHARING (1ULL << (5 + FOLLOWED_SHIFT + 15))

static struct inside_header header;
static struct inside_program program;
/* Unless n_takers is 0, so many threads that have taken pages wait for each other. */
static pthread_barrier_t takers;
static int n_takers, n_given_back;

/* In the place of memory.c. */
struct inside_header *memory__header(void)
{
	return &header;
}

void *memory__take_pages(size_t size, __u64 *place)
{
	void *pages = calloc(1, size);

	if (n_takers)
		pthread_barrier_wait(&takers);
	*place = (__u64)pages;
	return pages;
}

void *memory__map(__u64 place, size_t size)
{
	return (void *)place;
}

/* A table that the program has stays, though one of its threads does not need its view any more. */
void sys__unmap(void *address, size_t size)
{
	for (int i = 0; i < INSIDE_BLOCK_TABLES; i++) {
		if ((__u64)address == program.blocks[i])
			return;
	}
	free(address);
	__atomic_fetch_add(&n_given_back, 1, __ATOMIC_RELAXED);
}

bool memory__is_full(void)
{
	return false;
}

static void begin(bool samples)
{
	for (int i = 0; i < INSIDE_BLOCK_TABLES; i++)
		free((void *)program.blocks[i]);
	program = (struct inside_program){ 0 };
	header = (struct inside_header){ .settings.max_live_shift = 20 };
	header.settings.sampling.sample = samples;
	header.settings.sampling.sample_rate = UINT64_MAX / 4096;
	header.settings.sampling.sample_certain_bytes = 1 << 20;
	blocks__begin(&program);
}

static int put(__u64 address)
{
	const struct ap_block block = { .size_bytes = 24, .record = 1, .weight = 1 };
	struct ap_block stale;

	return blocks__put(address, &block, &stale);
}

static bool take(__u64 address)
{
	struct ap_block block;

	return blocks__take(address, &block);
}

static void assert_nothing_followed(void)
{
	for (size_t i = 0; i < sizeof(blocks_followed); i++)
		assert_int_equal(blocks_followed[i], 0);
}

static void test_block_is_there_until_it_is_taken(void **state)
{
	for (int samples = 0; samples < 2; samples++) {
		begin(samples);
		assert_false(blocks__may_have(0x1000));
		assert_int_equal(put(0x1000), 0);
		assert_true(blocks__has(0x1000));
		assert_int_equal(blocks__may_have(0x1000), samples);
		assert_false(blocks__may_have(0x1020));
		assert_true(take(0x1000));
		assert_false(take(0x1000));
		assert_nothing_followed();
	}
}

static void test_those_that_share_a_count_are_told_apart_by_the_table(void **state)
{
	begin(true);
	assert_ptr_equal(blocks__followed(0x1000), blocks__followed(0x1000 + SHARING));
	assert_int_equal(put(0x1000), 0);
	assert_true(blocks__may_have(0x1000 + SHARING));
	assert_false(take(0x1000 + SHARING));
	assert_int_equal(put(0x1000 + SHARING), 0);
	assert_true(take(0x1000));
	assert_true(blocks__may_have(0x1000 + SHARING));
	assert_true(take(0x1000 + SHARING));
	assert_nothing_followed();
}

static void test_block_that_ended_unseen_counts_no_more(void **state)
{
	begin(true);
	assert_int_equal(put(0x1000), 0);
	assert_int_equal(put(0x1000), -EEXIST);
	assert_nothing_followed();
	assert_int_equal(put(0x1000), 0);
	assert_true(take(0x1000));
	assert_nothing_followed();
}

static void test_block_without_room_counts_no_more(void **state)
{
	begin(true);
	header.settings.max_blocks = 1;
	assert_int_equal(put(0x1000), 0);
	assert_int_equal(put(0x2000), -ENOSPC);
	assert_false(blocks__may_have(0x2000));
	assert_true(take(0x1000));
	assert_nothing_followed();
}

static void test_full_count_stays(void **state)
{
	begin(true);
	for (__u64 i = 0; i < 2 * FOLLOWED_MOST; i++)
		assert_int_equal(put(0x1000 + i * SHARING), 0);
	for (__u64 i = 0; i < 2 * FOLLOWED_MOST; i++) {
		assert_true(blocks__may_have(0x1000 + i * SHARING));
		assert_true(take(0x1000 + i * SHARING));
	}
	assert_true(blocks__may_have(0x1000));
	/* In a forked child nothing is there. */
	begin(true);
	assert_nothing_followed();
}

static void test_no_block_is_overlooked(void **state)
{
	static bool is_there[N_ADDRESSES];

	begin(true);
	for (int i = 0; i < 200000; i++) {
		__u64 at = random() % N_ADDRESSES, address = 0x100000 + at * 4096 + 16;

		assert_int_equal(blocks__has(address), is_there[at]);
		assert_true(blocks__may_have(address) || !is_there[at]);
		if (is_there[at])
			assert_true(take(address));
		else
			assert_int_equal(put(address), 0);
		is_there[at] = !is_there[at];
	}
	for (__u64 at = 0; at < N_ADDRESSES; at++)
		assert_int_equal(take(0x100000 + at * 4096 + 16), is_there[at]);
	assert_nothing_followed();
}

/* Returns NULL, or the context if a block is not there. */
static void *put_and_take(void *context)
{
	__u64 first = (__u64)context;

	for (__u64 i = 0; i < 200000; i++) {
		__u64 address = first + i % 64 * SHARING;

		if (put(address) || !blocks__may_have(address) || !take(address))
			return context;
	}
	return NULL;
}

/* Returns NULL, or the context if the block is not there. */
static void *put_one(void *context)
{
	__u64 address = (__u64)context;

	return put(address) || !blocks__has(address) ? context : NULL;
}

static void test_two_threads_add_the_first_table_at_once(void **state)
{
	pthread_t threads[2];

	begin(false);
	n_takers = 2;
	n_given_back = 0;
	assert_int_equal(pthread_barrier_init(&takers, NULL, n_takers), 0);
	for (__u64 i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, put_one, (void *)(0x1000 + i * 32)), 0);
	for (int i = 0; i < 2; i++) {
		void *error;

		assert_int_equal(pthread_join(threads[i], &error), 0);
		assert_null(error);
	}
	n_takers = 0;
	pthread_barrier_destroy(&takers);
	assert_int_equal(n_given_back, 1);
	assert_true(take(0x1000));
	assert_true(take(0x1020));
}

static void test_threads_share_counts(void **state)
{
	pthread_t threads[N_THREADS];

	begin(true);
	for (__u64 i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_and_take,
						(void *)(0x1000 + i * 64 * SHARING)),
				 0);
	for (int i = 0; i < N_THREADS; i++) {
		void *error;

		assert_int_equal(pthread_join(threads[i], &error), 0);
		assert_null(error);
	}
	assert_nothing_followed();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block_is_there_until_it_is_taken),
		cmocka_unit_test(test_those_that_share_a_count_are_told_apart_by_the_table),
		cmocka_unit_test(test_block_that_ended_unseen_counts_no_more),
		cmocka_unit_test(test_block_without_room_counts_no_more),
		cmocka_unit_test(test_full_count_stays),
		cmocka_unit_test(test_no_block_is_overlooked),
		cmocka_unit_test(test_two_threads_add_the_first_table_at_once),
		cmocka_unit_test(test_threads_share_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
