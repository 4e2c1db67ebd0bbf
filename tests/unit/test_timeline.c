// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include "cleanup.h"
#include "timeline.h"

#define MS 1000000ULL

static void add(struct timeline *timeline, __u64 time_ns)
{
	struct timeline_sample sample = { .time_ns = time_ns, .live = time_ns };

	assert_int_equal(timeline__add(timeline, &sample), 0);
}

/* A sample is due at each multiple of the interval; a late one does not make the next ones late. */
static void test_interval(void **state)
{
	_cleanup_(timeline__release) struct timeline timeline = { .interval_ns = 5 * MS };

	assert_int_equal(timeline__due_ns(&timeline, 0), 0);
	add(&timeline, 0);
	assert_int_equal(timeline__due_ns(&timeline, 0), 5 * MS);
	assert_int_equal(timeline__due_ns(&timeline, 4 * MS), 1 * MS);
	assert_int_equal(timeline__due_ns(&timeline, 5 * MS), 0);
	add(&timeline, 9 * MS);
	assert_int_equal(timeline__due_ns(&timeline, 9 * MS), 1 * MS);
	add(&timeline, 22 * MS);
	assert_int_equal(timeline__due_ns(&timeline, 22 * MS), 3 * MS);
	assert_int_equal(timeline.n, 3);
}

/* With an interval all samples stay. */
static void test_all_stay(void **state)
{
	_cleanup_(timeline__release) struct timeline timeline = { .interval_ns = MS };

	for (__u64 i = 0; i < 3 * TIMELINE_SAMPLES; i++)
		add(&timeline, i * MS);
	assert_int_equal(timeline.n, 3 * TIMELINE_SAMPLES);
	for (size_t i = 0; i < timeline.n; i++)
		assert_int_equal(timeline.samples[i].time_ns, i * MS);
}

/* Without one every second goes when there are too many, and the next ones come half as often. */
static void test_thinned_out(void **state)
{
	_cleanup_(timeline__release) struct timeline timeline = { 0 };
	__u64 now = 0, step = 0;

	for (int i = 0; i < 3 * TIMELINE_SAMPLES; i++) {
		add(&timeline, now);
		step = timeline__due_ns(&timeline, now);
		assert_true(timeline.n <= TIMELINE_SAMPLES);
		assert_true(i < TIMELINE_SAMPLES || timeline.n > TIMELINE_SAMPLES / 2);
		now += step;
	}
	assert_int_equal(step, 16 * MS);
	for (size_t i = 0; i < timeline.n; i++)
		assert_int_equal(timeline.samples[i].time_ns, i * step);
}

static void test_same_time(void **state)
{
	_cleanup_(timeline__release) struct timeline timeline = { .interval_ns = MS };
	struct timeline_sample later = { .time_ns = 3 * MS, .live = 42 };

	add(&timeline, 0);
	add(&timeline, 3 * MS);
	assert_int_equal(timeline__add(&timeline, &later), 0);
	assert_int_equal(timeline.n, 2);
	assert_int_equal(timeline.samples[1].live, 42);
}

/* What takes long is not done all the time. */
static void test_pause(void **state)
{
	_cleanup_(timeline__release) struct timeline timeline = { .interval_ns = MS };

	timeline__pause(&timeline, 50 * MS);
	assert_int_equal(timeline__due_ns(&timeline, 0), 0);
	add(&timeline, 2 * MS);
	timeline__pause(&timeline, MS / 2);
	assert_int_equal(timeline__due_ns(&timeline, 2 * MS), MS);
	timeline__pause(&timeline, 50 * MS);
	assert_int_equal(timeline__due_ns(&timeline, 2 * MS), 50 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval),    cmocka_unit_test(test_all_stay),
		cmocka_unit_test(test_thinned_out), cmocka_unit_test(test_same_time),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
