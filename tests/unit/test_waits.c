// SPDX-License-Identifier: GPL-3.0-or-later
/* How long the programs wait for unwind tables (wait_abi.h), by a clock that only the programs advance (tests/twin). */
#include "unit.h"

#include "twin.h"
#include "wait_abi.h"

#define NEVER	  ((__u64)1 << 62)
#define MODULE	  7
#define NS_PER_MS 1000000ULL
/* What looks at the clock take beyond a limit. */
#define LOOKS_NS 10000

static int set_up(void **state)
{
	twin__reset();
	twin__set_unread(0, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	twin__free();
	return 0;
}

static __u64 wait_in_vain(void)
{
	__u64 waited_ns;

	assert_false(twin__await_table(MODULE, NEVER, &waited_ns));
	return waited_ns;
}

static void assert_waits(__u64 waited_ns, __u64 limit_ns)
{
	assert_in_range(waited_ns, limit_ns, limit_ns + LOOKS_NS);
}

static void test_waits_in_vain_get_shorter(void **state)
{
	__u64 sum_ns = 0, last_ns = 0;

	for (__u32 shift = 0; shift < AP_MAX_WAIT_SHIFT; shift++) {
		for (__u64 in_vain_ns = 0; in_vain_ns < AP_VAIN_WAITS_NS; in_vain_ns += last_ns) {
			last_ns = wait_in_vain();
			sum_ns += last_ns;
			assert_in_range(last_ns, AP_WAIT_NS >> shift,
					(AP_WAIT_NS >> (shift ? shift - 1 : 0)) + LOOKS_NS);
		}
	}
	assert_true(sum_ns < (AP_MAX_WAIT_SHIFT + 1) * AP_VAIN_WAITS_NS);
	for (int i = 0; i < 1000; i++)
		assert_waits(wait_in_vain(), AP_WAIT_NS >> AP_MAX_WAIT_SHIFT);
}

static void test_sum_is_bounded(void **state)
{
	__u64 sum_ns = 0;

	/* User space makes progress all the time. */
	for (int i = 0; i < 100000; i++)
		sum_ns += wait_in_vain();
	assert_in_range(sum_ns, AP_WAITS_BUDGET_NS, AP_WAITS_BUDGET_NS * 11 / 10);
	assert_int_equal(wait_in_vain(), 0);
}

static void test_tables_that_come_in_time(void **state)
{
	__u64 waited_ns;

	for (int i = 0; i < 500; i++) {
		assert_true(twin__await_table(MODULE, 9 * NS_PER_MS, &waited_ns));
		assert_waits(waited_ns, 9 * NS_PER_MS - LOOKS_NS);
	}
	assert_waits(wait_in_vain(), AP_WAIT_NS);
}

static void test_tables_in_time_make_up(void **state)
{
	__u64 waited_ns;

	for (int i = 0; i < 20; i++)
		wait_in_vain();
	assert_true(wait_in_vain() < AP_WAIT_NS / 2);
	for (int i = 0; i < 200; i++)
		assert_true(twin__await_table(MODULE, NS_PER_MS, &waited_ns));
	assert_waits(wait_in_vain(), AP_WAIT_NS);
}

static void test_waits_while_few_stacks_can_be_sent(void **state)
{
	__u64 sum_ns = 0;

	twin__set_unread(1 << 19, 1 << 20);
	for (int i = 0; i < 400; i++) {
		__u64 waited_ns = wait_in_vain();

		assert_waits(waited_ns, AP_WAIT_NS);
		sum_ns += waited_ns;
	}
	for (int i = 0; i < 400; i++)
		sum_ns += wait_in_vain();
	assert_true(sum_ns <= AP_WAITS_BUDGET_NS + AP_WAIT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits_in_vain_get_shorter, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sum_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tables_that_come_in_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tables_in_time_make_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waits_while_few_stacks_can_be_sent, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
