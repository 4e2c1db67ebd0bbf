// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_file.h"
#include "diff.h"
#include "error.h"
#include "filter.h"
#include "profile_runs.h"
#include "runs_story.h"
#include "stack_groups.h"
#include "stack_view.h"

/* The calls of @run whose innermost function is @name. */
static __u64 calls_of(const struct profile *profile, __u32 run, const char *name)
{
	__u64 calls = 0;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct profile_stack *stack = &profile->stacks[count->stack - 1];
		const struct profile_frame *frame = &profile->frames[stack->frames[0] - 1];

		if (profile__count_run(profile, count) == run &&
		    !strcmp(profile__frame_function(profile, frame)->name, name))
			calls += count->calls;
	}
	return calls;
}

static void assert_story(const struct profile *profile)
{
	assert_int_equal(profile__n_runs(profile), 3);
	for (__u32 run = 1; run <= 3; run++) {
		assert_int_equal(calls_of(profile, run, "handle"), 999 + run);
		assert_int_equal(calls_of(profile, run, "cache"), 5);
		assert_int_equal(calls_of(profile, run, "plugin"), 1);
		assert_int_equal(calls_of(profile, run, "jit_add"), run < 3);
		assert_int_equal(calls_of(profile, run, "jit_mul"), run == 3);
		assert_int_equal(profile__run_ledger(profile, run, "events"), 1006 + run);
	}
	assert_true(profile__ledger_adds_up(profile));
}

/* What is the same is there once; a file that was replaced, and an address, are not the same. */
static void test_merging(void **state)
{
	struct profile *profile = runs_story__new();

	assert_non_null(profile);
	assert_story(profile);
	assert_int_equal(profile->n_modules, 3);
	assert_int_equal(profile->n_frames, 3 + 2 + 2);
	assert_int_equal(profile->n_stacks, 2 + 2 + 2);
	assert_int_equal(profile->n_functions, 6);
	assert_int_equal(profile->n_processes, 3);
	assert_int_equal(profile->n_counts, 3 * 4);
	assert_int_equal(profile->n_lifetimes, 3 * 5);
	assert_int_equal(profile->n_timeline, 3 * 4);
	profile__free(profile);
}

static void test_settling(void **state)
{
	static const struct {
		const char *key, *value;
	} expected[] = {
		{ "command", "app" },
		{ "start_time", "2026-11-21T09:31:00Z" },
		{ "elapsed_seconds", "60.000000" },
		{ "epoch_ns", "300000000" },
		{ "peak_bytes", "5900" },
		{ "exit_status", "3" },
		{ "allocators", "/lib/libc.so.6\n/opt/plugin.so" },
		{ "runs", "3" },
		{ "wanted_runs", "4" },
		{ "warmup_runs", "1" },
	};
	struct profile *profile = runs_story__new();

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_string_equal(profile__meta(profile, expected[i].key), expected[i].value);
	assert_int_equal(profile->n_meta, sizeof(expected) / sizeof(expected[0]));
	assert_int_equal(profile__ledger(profile, "events"), 1007 + 1008 + 1009);
	assert_int_equal(profile__ledger(profile, "allocations"), 1007 + 1008 + 1009);
	assert_int_equal(profile__peak_run(profile), 2);
	assert_string_equal(profile__run_meta(profile, 2, "exit_status"), "3");
	assert_null(profile__run_meta(profile, 1, "runs"));
	profile__free(profile);
}

/* A run that was taken out again is what it was, under the ids of the whole. */
static void test_taking(void **state)
{
	struct profile *profile = runs_story__new(), *taken = NULL, *alone;

	for (__u32 run = 1; run <= 3; run++) {
		assert_int_equal(profile__take_run(profile, run, &taken), 0);
		alone = runs_story__run(run);
		assert_int_equal(taken->n_runs, 0);
		assert_int_equal(taken->n_processes, 1);
		assert_int_equal(taken->n_counts, alone->n_counts);
		assert_int_equal(taken->n_lifetimes, alone->n_lifetimes);
		assert_int_equal(taken->n_timeline, alone->n_timeline);
		assert_int_equal(taken->n_ledger, alone->n_ledger);
		for (size_t i = 0; i < alone->n_ledger; i++)
			assert_int_equal(profile__ledger(taken, alone->ledger[i].name),
					 alone->ledger[i].value);
		for (size_t i = 0; i < alone->n_meta; i++)
			assert_string_equal(profile__meta(taken, alone->meta[i].key),
					    alone->meta[i].value);
		assert_true(profile__ledger_adds_up(taken));
		assert_int_equal(calls_of(taken, 1, "handle"), 999 + run);
		assert_int_equal(taken->timeline[3].time_ns, alone->timeline[3].time_ns);
		assert_int_equal(taken->timeline[3].run, 1);
		/* Ids. */
		assert_int_equal(taken->n_modules, profile->n_modules);
		assert_int_equal(taken->n_frames, profile->n_frames);
		assert_int_equal(taken->n_stacks, profile->n_stacks);
		for (size_t i = 0; i < profile->n_stacks; i++)
			assert_memory_equal(taken->stacks[i].frames, profile->stacks[i].frames,
					    2 * sizeof(__u32));
		for (size_t i = 0; i < profile->n_frames; i++)
			assert_int_equal(taken->frames[i].lines[0].function,
					 profile->frames[i].lines[0].function);
		profile__free(alone);
		profile__free(taken);
	}
	assert_int_equal(profile__take_run(profile, 0, &taken), -ENOENT);
	assert_int_equal(profile__take_run(profile, 4, &taken), -ENOENT);
	assert_int_equal(profile__add_run(profile, profile), -EINVAL);
	profile__free(profile);
}

static void test_file(void **state)
{
	struct profile *profile = runs_story__new(), *read = NULL, *taken = NULL;
	struct error error = { 0 };
	char path[] = "/tmp/runs.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	assert_int_equal(data_file__write(profile, path, &error), 0);
	if (data_file__read(path, &read, &error))
		fail_msg("%s", error.text);
	unlink(path);
	assert_story(read);
	assert_int_equal(read->n_modules, profile->n_modules);
	assert_int_equal(read->n_frames, profile->n_frames);
	assert_int_equal(read->n_timeline, profile->n_timeline);
	assert_int_equal(profile__take_run(read, 3, &taken), 0);
	assert_int_equal(taken->n_modules, profile->n_modules);
	assert_int_equal(taken->n_frames, profile->n_frames);
	assert_int_equal(calls_of(taken, 1, "jit_mul"), 1);
	profile__free(taken);
	profile__free(read);
	profile__free(profile);
}

/* Only places in files of the same build id have the same names. */
static void test_borrowing(void **state)
{
	struct profile *named = runs_story__new(), *run = runs_story__run(3);

	for (size_t i = 0; i < run->n_frames; i++)
		assert_int_equal(profile__set_frame_lines(run, i + 1, NULL, 0), 0);
	run->modules[1].file = 44;
	assert_int_equal(profile__borrow_names(run, named), 0);
	for (size_t i = 0; i < run->n_frames; i++)
		assert_int_equal(run->frames[i].n_lines, run->frames[i].module == 1);
	run->modules[1].file = 33;
	assert_int_equal(profile__borrow_names(run, named), 0);
	for (size_t i = 0; i < run->n_frames; i++)
		assert_int_equal(run->frames[i].n_lines, run->frames[i].module != 0);
	profile__free(named);
	profile__free(run);
}

static struct filtered apply(const struct profile *profile, struct filter_options options)
{
	struct stack_view_options view_options = { 0 };
	struct stack_groups *groups;
	struct filtered filtered;
	struct stack_view *view;
	struct error error = { 0 };

	assert_int_equal(stack_view__new(profile, &view_options, &view), 0);
	groups = stack_groups__new(profile, view);
	assert_non_null(groups);
	if (filter__apply(profile, groups, &options, &filtered, &error))
		fail_msg("%s", error.text);
	stack_groups__free(groups);
	stack_view__free(view);
	return filtered;
}

/* Shares are of each run, times are since its start, and ages count back from its end. */
static void test_clocks(void **state)
{
	const struct filter_time ninety = { true, true, 0, 0.9 },
				 ten_s = { true, false, 10000000000 };
	const struct filter_time five_s = { true, false, 5000000000 };
	struct profile *profile = runs_story__new();
	struct filtered filtered = apply(profile, (struct filter_options){ 0 });

	assert_int_equal(filtered.end_ns, 30000000000);
	assert_int_equal(filtered.epoch_ns, 300000000);
	assert_int_equal(filtered.total.allocations, 1007 + 1008 + 1009);
	/* Born after 20 % of each run: of the longest that is 24 s before the end. */
	assert_int_equal(filtered.total.oldest_ns, 6000000000);
	filtered__release(&filtered);
	filtered = apply(profile, (struct filter_options){ .freed_after = ninety });
	assert_int_equal(filtered.total.allocations, 30);
	assert_int_equal(filtered.total.unsure, 0);
	filtered__release(&filtered);
	/* 8, 16 and 24 seconds old. */
	filtered = apply(profile, (struct filter_options){ .older = ten_s });
	assert_int_equal(filtered.total.live, 10);
	filtered__release(&filtered);
	filtered = apply(profile, (struct filter_options){ .older = five_s });
	assert_int_equal(filtered.total.live, 15);
	filtered__release(&filtered);
	profile__free(profile);
}

/* Peaks of several runs do not add up: it is the highest that is shown. */
static void test_peak(void **state)
{
	struct profile *profile = runs_story__new();
	struct filtered filtered = apply(profile, (struct filter_options){ 0 });

	assert_int_equal(filtered.total.peak, 9);
	assert_int_equal(filtered.total.peak_bytes, 900);
	assert_int_equal(filtered.whole.peak_bytes, 900);
	filtered__release(&filtered);
	filtered = apply(profile, (struct filter_options){ .runs_apart = true });
	assert_int_equal(filtered.total.peak, 19);
	filtered__release(&filtered);
	profile__free(profile);
}

/* A group of runs: the sections add up to the difference of the medians. */
static void test_diff(void **state)
{
	struct profile *runs = runs_story__new(), *one = runs_story__run(1);
	struct stack_view *views[DIFF_SIDES];
	struct diff_options options = { .cost = COST_ALLOCATIONS };
	struct diff_input inputs[DIFF_SIDES];
	__s64 sum = 0;
	struct error error = { 0 };
	struct diff *diff;

	assert_int_equal(stack_view__new(one, &(struct stack_view_options){ 0 }, &views[0]), 0);
	assert_int_equal(stack_view__new(runs, &(struct stack_view_options){ 0 }, &views[1]), 0);
	inputs[DIFF_BEFORE] = (struct diff_input){ one, views[0], NULL };
	inputs[DIFF_AFTER] = (struct diff_input){ runs, views[1], NULL };
	assert_int_equal(diff__new(inputs, &options, &diff, &error), 0);
	assert_int_equal(diff->profiles[DIFF_AFTER].n_runs, 3);
	assert_int_equal(diff->profiles[DIFF_BEFORE].n_runs, 1);
	assert_int_equal(diff->profiles[DIFF_AFTER].total, 1008);
	assert_int_equal(diff->profiles[DIFF_AFTER].min, 1007);
	assert_int_equal(diff->profiles[DIFF_AFTER].max, 1009);
	for (int section = 0; section < DIFF_SECTIONS; section++)
		sum += diff__difference(diff->sections[section].costs);
	assert_int_equal(sum + diff->between_runs[DIFF_AFTER], 1);
	diff__free(diff);
	/* A run without any process counts as one that allocated nothing. */
	assert_int_equal(profile__add_run_meta(runs, 4, "command", "app"), 0);
	assert_int_equal(diff__new(inputs, &options, &diff, &error), 0);
	assert_int_equal(diff->profiles[DIFF_AFTER].n_runs, 4);
	assert_int_equal(diff->profiles[DIFF_AFTER].min, 0);
	diff__free(diff);
	stack_view__free(views[0]);
	stack_view__free(views[1]);
	profile__free(runs);
	profile__free(one);
}

/* A search of all keys for each would take a minute. */
static void test_many_keys(void **state)
{
	enum {
		KEYS = 200000
	};
	struct profile *runs = runs_story__new();
	char key[32];

	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		assert_int_equal(profile__add_run_meta(runs, 2, key, key), 0);
		assert_int_equal(profile__add_run_ledger(runs, 2, key, i), 0);
	}
	assert_int_equal(profile__add_run_meta(runs, 2, "key7", ""), -EINVAL);
	assert_int_equal(profile__add_run_ledger(runs, 2, "key7", 0), -EINVAL);
	assert_string_equal(profile__run_meta(runs, 2, "key7"), "key7");
	assert_null(profile__run_meta(runs, 3, "key7"));
	assert_int_equal(profile__run_ledger(runs, 2, key), KEYS - 1);
	assert_int_equal(profile__run_ledger(runs, 3, key), 0);
	profile__free(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merging),	  cmocka_unit_test(test_settling),
		cmocka_unit_test(test_taking),	  cmocka_unit_test(test_file),
		cmocka_unit_test(test_borrowing), cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_peak),	  cmocka_unit_test(test_diff),
		cmocka_unit_test(test_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
