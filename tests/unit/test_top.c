// SPDX-License-Identifier: GPL-3.0-or-later
/* Rows of `allocprof top`: what is between copies of one recording, whose ids differ. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "filter.h"
#include "profile.h"
#include "stack_groups.h"
#include "stack_view.h"
#include "top.h"

/* The numbers of each of two callers. */
struct numbers {
	__u64 calls, live;
};

#define BLOCK_BYTES 100

/* Calls of one caller in a process, and its live blocks. Each block has BLOCK_BYTES. */
static void add_calls(struct profile *profile, __u32 process, unsigned int caller,
		      enum ap_function called, struct numbers numbers)
{
	__u32 module, thread, function, frames[2], stack, count;
	char name[16];
	int err = 0;

	for (unsigned int i = 0; i < 2; i++) {
		struct profile_line line = { 0 };

		snprintf(name, sizeof(name), i ? "main" : "caller_%u", caller);
		err |= profile__add_module(profile, "/bin/target", "ab", &module);
		err |= profile__add_frame(profile, module, i ? 0x9000 : 0x1000 + caller, false,
					  &frames[i]);
		err |= profile__add_function(profile, name, name, name, &function);
		line.function = function;
		err |= profile__set_frame_lines(profile, frames[i], &line, 1);
	}
	err |= profile__add_thread(profile, process, "worker", &thread);
	err |= profile__add_stack(profile, frames, 2, AP_END_COMPLETE, &stack);
	err |= profile__add_count(profile, thread, stack, called, numbers.calls,
				  numbers.calls * BLOCK_BYTES, &count);
	err |= profile__add_blocks(
		profile, &(struct profile_blocks){
				 .count = count,
				 .allocations = numbers.calls,
				 .size_bytes = numbers.calls * BLOCK_BYTES,
				 .frees = numbers.calls - numbers.live,
				 .freed_bytes = (numbers.calls - numbers.live) * BLOCK_BYTES,
			 });
	assert_int_equal(err, 0);
}

/* A copy with the callers 1 and 2 of a process; @backwards gives all of it other ids. */
static struct profile *make_copy(struct numbers one, struct numbers two, bool backwards)
{
	struct profile *profile = profile__new();
	__u32 process;

	assert_non_null(profile);
	assert_int_equal(profile__add_process(profile, 0, 7, 0, "target", &process), 0);
	add_calls(profile, process, backwards ? 2 : 1, AP_MALLOC, backwards ? two : one);
	add_calls(profile, process, backwards ? 1 : 2, AP_MALLOC, backwards ? one : two);
	return profile;
}

struct shown {
	struct profile *profile;
	struct stack_view *view;
	struct stack_groups *groups;
	struct filtered filtered;
};

static void show(struct shown *shown, struct profile *profile)
{
	struct filter_options options = { 0 };

	shown->profile = profile;
	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &shown->view),
			 0);
	shown->groups = stack_groups__new(profile, shown->view);
	assert_non_null(shown->groups);
	assert_int_equal(filter__apply(profile, shown->groups, &options, &shown->filtered, NULL),
			 0);
}

static void release(struct shown *shown)
{
	filtered__release(&shown->filtered);
	stack_groups__free(shown->groups);
	stack_view__free(shown->view);
	profile__free(shown->profile);
}

/* Adds a copy at @seconds, and shows it. */
static void take(struct top *top, struct shown *shown, double seconds, struct profile *profile)
{
	if (shown->profile)
		release(shown);
	show(shown, profile);
	assert_int_equal(top__add(top, profile, seconds * NS_PER_S, false), 0);
}

static struct top_rows rows_of(const struct top *top, const struct shown *shown,
			       struct top_wish wish)
{
	struct top_rows rows;

	assert_int_equal(top__add_up(top, shown->profile, shown->groups, shown->filtered.counts,
				     &wish, &rows),
			 0);
	return rows;
}

static const char *name_of(const struct shown *shown, const struct top_row *row)
{
	return shown->groups->labels[row->label].text;
}

/* Rates are by the time between copies, and the same stack is found under other ids. */
static void test_rates(void **state)
{
	struct top top = { 0 };
	struct shown shown = { 0 };
	struct top_rows rows;

	take(&top, &shown, 1,
	     make_copy((struct numbers){ 10, 1 }, (struct numbers){ 20, 20 }, false));
	take(&top, &shown, 3,
	     make_copy((struct numbers){ 50, 4 }, (struct numbers){ 30, 5 }, true));
	rows = rows_of(&top, &shown, (struct top_wish){ .sort = TOP_CALLS });
	assert_int_equal(rows.n, 2);
	assert_string_equal(name_of(&shown, &rows.rows[0]), "caller_1");
	assert_float_equal(rows.rows[0].values[TOP_CALLS], 20, 0);
	assert_float_equal(rows.rows[0].values[TOP_BYTES], 2000, 0);
	assert_float_equal(rows.rows[0].values[TOP_LIVE], 400, 0);
	assert_float_equal(rows.rows[0].values[TOP_GROWTH], 300, 0);
	assert_float_equal(rows.rows[1].values[TOP_CALLS], 5, 0);
	assert_float_equal(rows.rows[1].values[TOP_GROWTH], -1500, 0);
	assert_float_equal(rows.total.values[TOP_CALLS], 25, 0);
	top_rows__release(&rows);
	rows = rows_of(&top, &shown, (struct top_wish){ .sort = TOP_LIVE });
	assert_string_equal(name_of(&shown, &rows.rows[0]), "caller_2");
	top_rows__release(&rows);
	release(&shown);
	top__release(&top);
}

/* Totals count from the mark on, and before there is one from the beginning. */
static void test_mark(void **state)
{
	struct top top = { 0 };
	struct shown shown = { 0 };
	struct top_rows rows;

	take(&top, &shown, 1,
	     make_copy((struct numbers){ 10, 1 }, (struct numbers){ 20, 20 }, false));
	rows = rows_of(&top, &shown, (struct top_wish){ .since_mark = true });
	assert_float_equal(rows.total.values[TOP_CALLS], 30, 0);
	assert_float_equal(rows.total.values[TOP_GROWTH], 2100, 0);
	top_rows__release(&rows);
	assert_int_equal(top__mark(&top), 0);
	take(&top, &shown, 2,
	     make_copy((struct numbers){ 11, 1 }, (struct numbers){ 20, 19 }, false));
	rows = rows_of(&top, &shown, (struct top_wish){ .since_mark = true });
	assert_float_equal(rows.total.values[TOP_CALLS], 1, 0);
	assert_float_equal(rows.total.values[TOP_GROWTH], -100, 0);
	assert_int_equal(top__mark_span_ns(&top), NS_PER_S);
	top_rows__release(&rows);
	release(&shown);
	top__release(&top);
}

/* Growth is that of a minute, also after many copies, of which few are kept. */
static void test_minute(void **state)
{
	struct top top = { 0 };
	struct shown shown = { 0 };
	struct top_rows rows;

	for (unsigned int second = 1; second <= 200; second++)
		take(&top, &shown, second,
		     make_copy((struct numbers){ second, second }, (struct numbers){ 1, 1 },
			       second % 2));
	assert_in_range(top__growth_span_ns(&top), 60 * NS_PER_S, 65 * NS_PER_S);
	rows = rows_of(&top, &shown, (struct top_wish){ .sort = TOP_GROWTH });
	assert_float_equal(rows.total.values[TOP_GROWTH],
			   top__growth_span_ns(&top) / NS_PER_S * BLOCK_BYTES, 0);
	top_rows__release(&rows);
	release(&shown);
	top__release(&top);
}

/* Memory of a process that has ended is not live, until the recording is over. */
static void test_ended_process(void **state)
{
	for (int has_ended = 0; has_ended < 2; has_ended++) {
		struct profile *profile =
			make_copy((struct numbers){ 10, 1 }, (struct numbers){ 20, 20 }, false);
		struct top top = { 0 };
		struct shown shown = { 0 };
		struct top_rows rows;

		profile->processes[0].end_ns = 5;
		show(&shown, profile);
		assert_int_equal(top__add(&top, profile, NS_PER_S, has_ended), 0);
		rows = rows_of(&top, &shown, (struct top_wish){ .by = TOP_BY_PROCESS });
		assert_int_equal(rows.n, 1);
		assert_float_equal(rows.rows[0].values[TOP_LIVE], has_ended ? 2100 : 0, 0);
		top_rows__release(&rows);
		release(&shown);
		top__release(&top);
	}
}

/* What the last process left is live at the end, but not what one had that ended long before it. */
static void test_ended_before(void **state)
{
	struct top top = { 0 };
	struct shown shown = { 0 };
	struct top_rows rows;

	for (int copy = 0; copy < 2; copy++) {
		struct profile *profile =
			make_copy((struct numbers){ 10, 1 }, (struct numbers){ 20, 20 }, false);
		__u32 other;

		assert_int_equal(profile__add_process(profile, 0, 8, 0, "other", &other), 0);
		add_calls(profile, other, 1, AP_MALLOC, (struct numbers){ 3, 3 });
		profile->processes[0].end_ns = 5;
		profile->processes[1].end_ns = copy ? 6 : 0;
		if (copy)
			release(&shown);
		show(&shown, profile);
		assert_int_equal(top__add(&top, profile, (copy + 1) * NS_PER_S, copy), 0);
		rows = rows_of(&top, &shown, (struct top_wish){ .by = TOP_BY_PROCESS });
		assert_int_equal(rows.n, 2);
		assert_float_equal(rows.total.values[TOP_LIVE], 300, 0);
		top_rows__release(&rows);
	}
	release(&shown);
	top__release(&top);
}

/* Mappings, which nothing charges to a function, are the innermost one's, each its own. */
static void test_mappings(void **state)
{
	struct profile *profile = profile__new();
	struct top top = { 0 };
	struct shown shown = { 0 };
	struct top_rows rows;
	__u32 process;

	assert_non_null(profile);
	assert_int_equal(profile__add_process(profile, 0, 7, 0, "target", &process), 0);
	add_calls(profile, process, 1, AP_MMAP, (struct numbers){ 10, 1 });
	add_calls(profile, process, 2, AP_MMAP, (struct numbers){ 20, 20 });
	take(&top, &shown, 1, profile);
	rows = rows_of(&top, &shown, (struct top_wish){ .sort = TOP_CALLS });
	assert_int_equal(rows.n, 2);
	assert_string_equal(name_of(&shown, &rows.rows[0]), "caller_2");
	assert_string_equal(name_of(&shown, &rows.rows[1]), "caller_1");
	assert_float_equal(rows.rows[0].values[TOP_LIVE], 2000, 0);
	top_rows__release(&rows);
	release(&shown);
	top__release(&top);
}

/* A scope selects what a row is the sum of. */
static void test_scope(void **state)
{
	struct top top = { 0 };
	struct shown shown = { 0 };
	struct top_wish wish = { .by = TOP_BY_STACK, .sort = TOP_LIVE };
	struct top_rows rows;

	take(&top, &shown, 1,
	     make_copy((struct numbers){ 10, 1 }, (struct numbers){ 20, 20 }, false));
	rows = rows_of(&top, &shown, (struct top_wish){ .sort = TOP_LIVE });
	wish.scopes[0] = (struct top_scope){ true, TOP_BY_FUNCTION, rows.rows[1].key };
	top_rows__release(&rows);
	rows = rows_of(&top, &shown, wish);
	assert_int_equal(rows.n, 1);
	assert_string_equal(name_of(&shown, &rows.rows[0]), "caller_1");
	assert_float_equal(rows.total.values[TOP_LIVE], 100, 0);
	top_rows__release(&rows);
	release(&shown);
	top__release(&top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),	     cmocka_unit_test(test_mark),
		cmocka_unit_test(test_minute),	     cmocka_unit_test(test_ended_process),
		cmocka_unit_test(test_ended_before), cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
