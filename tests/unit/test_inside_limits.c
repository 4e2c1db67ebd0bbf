// SPDX-License-Identifier: GPL-3.0-or-later
/* What the library of src/inside does where its memory is full or one of its limits is reached: what is not counted is said to be lost. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "allocprof.h"
#include "inside_host.h"
#include "measured_process.h"
#include "process.h"
#include "stacks.h"

#define N_BLOCKS 20000

/* The process never frees these blocks. */
static void *blocks[N_BLOCKS];

static void allocate_blocks(void)
{
	for (int i = 0; i < N_BLOCKS; i++) {
		blocks[i] = inside_malloc(24);
		CHECK(blocks[i]);
	}
}

static __u64 n_live(const struct measured *measured)
{
	__u64 sums[2] = { 0 };

	assert_int_equal(preload__read_blocks(measured->preload, sum_block, sums, NULL), 0);
	return sums[0];
}

/* Of 20,000 blocks some are in the table. */
static void check_untracked(const struct measured *measured, enum ap_untracked why, __u64 least,
			    __u64 most)
{
	__u64 live = n_live(measured);

	assert_true(live >= least && live <= most);
	assert_int_equal(measured->results.functions[AP_MALLOC].calls, N_BLOCKS);
	assert_int_equal(measured->results.stats[AP_STAT_ALLOCATIONS], live);
	assert_int_equal(measured->results.stats[AP_STAT_UNTRACKED + why], N_BLOCKS - live);
}

static void test_limits_of_live_blocks(void **state)
{
	const struct inside_settings few = { .mode = INSIDE_LIVE, .max_blocks = 1000 };
	const struct inside_settings small = { .mode = INSIDE_LIVE, .max_live_shift = 13 };
	struct measured measured;

	measure(&few, allocate_blocks, &measured);
	check_untracked(&measured, AP_UNTRACKED_LIVE_FULL, 1000, 1000);
	measured__finish(&measured);
	measure(&small, allocate_blocks, &measured);
	check_untracked(&measured, AP_UNTRACKED_LIVE_FULL, 1 << 12, 1 << 13);
	measured__finish(&measured);
}

/* From now on the file has no bytes left that nobody has taken. */
static void fill_memory(void)
{
	struct inside_header *header = memory__header();

	header->next = header->size_bytes;
}

static void allocate_in_full_memory(void)
{
	inside_free(inside_malloc(1));
	fill_memory();
	allocate_blocks();
}

static void test_full_memory(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE };
	struct measured measured;

	measure(&settings, allocate_in_full_memory, &measured);
	assert_true(n_live(&measured) > 0 && n_live(&measured) < N_BLOCKS);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, N_BLOCKS + 1);
	assert_int_equal(measured.results.stats[AP_STAT_UNTRACKED + AP_UNTRACKED_LIVE_FULL],
			 N_BLOCKS - n_live(&measured));
	measured__finish(&measured);
}

/* The file system has no page for what is mapped from now on. */
static long refuse_pages(long number, const long arguments[6])
{
	return number == __NR_madvise && arguments[2] == MADV_POPULATE_WRITE
		       ? -ENOSPC
		       : host__ask_kernel(number, arguments);
}

static void allocate_without_room(void)
{
	inside_free(inside_malloc(1));
	memory__header()->is_tight = 1;
	host__answer_by(refuse_pages);
	allocate_blocks();
}

static void test_full_file_system(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE };
	struct measured measured;

	measure(&settings, allocate_without_room, &measured);
	assert_true(n_live(&measured) > 0 && n_live(&measured) < N_BLOCKS);
	assert_int_equal(measured.results.stats[AP_STAT_UNTRACKED + AP_UNTRACKED_NO_ROOM],
			 N_BLOCKS - n_live(&measured));
	measured__finish(&measured);
}

/* All functions that the library stands in front of, each with a key of its own. */
static void allocate_by_other_functions(void)
{
	void *block;

	inside_free(inside_malloc(1));
	inside_free(inside_calloc(1, 8));
	block = inside_realloc(inside_valloc(8), 9000);
	inside_free(inside_reallocarray(block, 2, 9000));
	CHECK(!inside_posix_memalign(&block, 64, 8));
	inside_free(block);
}

/* Calls with a key for which there is no room. */
static void test_records(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE, .max_records = 2 };
	struct measured measured;
	__u64 lost;

	measure(&settings, allocate_by_other_functions, &measured);
	lost = measured.results.stats[AP_STAT_LOST + AP_LOST_COUNTS_FULL];
	assert_int_equal(lost, 4);
	assert_int_equal(measured.results.stats[AP_STAT_EVENTS], 6);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_of_live_blocks),
		cmocka_unit_test(test_full_memory),
		cmocka_unit_test(test_full_file_system),
		cmocka_unit_test(test_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
