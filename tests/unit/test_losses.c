// SPDX-License-Identifier: GPL-3.0-or-later
/* What the programs do where maps and the ring buffer have no room, compiled for the host (tests/twin). */
#include "unit.h"

#include "abi.h"
#include "twin.h"
#include "record_abi.h"

#define CODE  0x400000
#define STACK 0x7000

static int set_up(void **state)
{
	twin__reset();
	return 0;
}

static int tear_down(void **state)
{
	twin__free();
	return 0;
}

static __u32 module_id, n_modules;

static void meet(const struct ap_module_record *record)
{
	module_id = record->id;
	n_modules++;
}

static void walk(struct twin_walk *walk)
{
	twin__forget();
	twin__walk(&(struct twin_hit){ .sp = STACK }, walk);
}

/* User space makes room for as many files as there are numbers. */
static void test_a_file_that_nobody_is_told_of_takes_no_number(void **state)
{
	const struct twin_mapping code = { CODE, CODE + 0x1000, 0, 5, 1, true };
	const __u64 stack[512] = { CODE + 0x10 };
	const struct twin_memory memory = { STACK, sizeof(stack), stack };
	struct twin_walk first, again;

	n_modules = 0;
	twin__set_mappings(&code, 1);
	twin__set_memory(&memory, 1);
	twin__on_module(meet);
	twin__fill_ring(true);
	for (int i = 0; i < 10; i++)
		walk(&first);
	assert_int_equal(n_modules, 0);
	twin__fill_ring(false);
	walk(&again);
	assert_int_equal(n_modules, 1);
	assert_int_equal(module_id, AP_MODULE_VDSO + 1);
}

/* Each number is a record's in user space, and those are bounded. */
static void test_a_stack_that_is_not_sent_takes_no_number(void **state)
{
	twin__fill_ring(true);
	for (int i = 0; i < 10; i++)
		assert_false(twin__dump());
	assert_int_equal(twin__count_dumps(), 0);
	twin__fill_ring(false);
	assert_true(twin__dump());
	assert_int_equal(twin__count_dumps(), 1);
	assert_int_equal(twin__count_records(), 1);
}

/* The block that a failed realloc keeps goes back where it was. */
static void test_a_failed_realloc_keeps_its_block(void **state)
{
	twin__set_live_room(2);
	assert_int_equal(twin__put_block(0x1000), 0);
	twin__enter_realloc(0x1000, 200);
	assert_false(twin__has_block(0x1000));
	twin__leave_realloc(0);
	assert_true(twin__has_block(0x1000));
	assert_int_equal(twin__stat(AP_STAT_DROPPED), 0);
}

/* Other threads have taken its place meanwhile. */
static void test_a_block_that_a_failed_realloc_cannot_keep_is_counted(void **state)
{
	twin__set_live_room(2);
	assert_int_equal(twin__put_block(0x1000), 0);
	twin__enter_realloc(0x1000, 200);
	assert_int_equal(twin__put_block(0x2000), 0);
	assert_int_equal(twin__put_block(0x3000), 0);
	assert_int_not_equal(twin__put_block(0x4000), 0);
	twin__leave_realloc(0);
	assert_false(twin__has_block(0x1000));
	assert_int_equal(twin__stat(AP_STAT_DROPPED), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_file_that_nobody_is_told_of_takes_no_number),
		TEST(test_a_stack_that_is_not_sent_takes_no_number),
		TEST(test_a_failed_realloc_keeps_its_block),
		TEST(test_a_block_that_a_failed_realloc_cannot_keep_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
