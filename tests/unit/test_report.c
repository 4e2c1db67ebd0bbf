// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_study.h"
#include "fixture.h"
#include "report.h"
#include "stack_groups.h"

struct view {
	struct profile *profile;
	struct stack_groups *groups;
	struct stack_view *stacks;
	struct filtered filtered;
	struct report *report;
};

static struct view open_view(struct profile *profile, struct filter_options options, int sort)
{
	struct view view = { .profile = profile };

	assert_non_null(profile);
	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &view.stacks),
			 0);
	view.groups = stack_groups__new(profile, view.stacks);
	assert_non_null(view.groups);
	assert_int_equal(filter__apply(profile, view.groups, &options, &view.filtered, NULL), 0);
	view.report = report__new(profile, view.groups, &view.filtered, REPORT_BY_THREAD, sort,
				  REPORT_GROWTH_OF_FUNCTIONS);
	assert_non_null(view.report);
	return view;
}

static void close_view(struct view *view)
{
	report__free(view->report);
	filtered__release(&view->filtered);
	stack_groups__free(view->groups);
	stack_view__free(view->stacks);
	profile__free(view->profile);
}

/* Entries sum up to the total, and come in order. */
static void test_sums(void **state)
{
	static const size_t n_entries[COSTS] = { 5, 5, 3, 3, 1, 5, 3, 3 };

	for (int sort = 0; sort < COSTS; sort++) {
		struct view view = open_view(case_study__new(), (struct filter_options){ 0 }, sort);
		__u64 sum = 0, last = UINT64_MAX;

		assert_int_equal(view.report->n_entries, n_entries[sort]);
		for (size_t i = 0; i < view.report->n_entries; i++) {
			__u64 cost = cost__of(sort, &view.report->entries[i].selected);

			assert_true(cost <= last);
			last = cost;
			sum += cost;
		}
		assert_int_equal(sum, cost__of(sort, &view.report->total));
		assert_true(view.report->at_exit);
		close_view(&view);
	}
}

static void test_functions_are_apart(void **state)
{
	struct view view = open_view(fixture__new(), (struct filter_options){ 0 }, COST_BYTES);

	/* Of stacks 1 and 2 one entry and of 1 one in another process, of stack 3 one for malloc and
	 * one for calloc. */
	assert_int_equal(view.report->n_entries, 7);
	assert_false(view.report->at_exit);
	close_view(&view);
}

/* What stands below a node is no more than the node, and all roots are the total. */
static void check_tree(const struct view *view, bool bottom_up, double min_share)
{
	const struct report_tree_options options = { COST_BYTES, bottom_up, min_share };
	struct report_tree *tree = report_tree__new(view->report, view->groups, &options);
	__u64 roots = 0;

	assert_non_null(tree);
	for (size_t i = 0; i < tree->n_nodes; i++) {
		const struct report_node *node = &tree->nodes[i];
		__u64 children = 0, blocks = 0;

		assert_true(node->n_frames || node->n_hidden);
		roots += node->depth ? 0 : node->size_bytes;
		for (size_t j = i + 1; j < tree->n_nodes && tree->nodes[j].depth > node->depth;
		     j++) {
			if (tree->nodes[j].depth > node->depth + 1)
				continue;
			children += tree->nodes[j].size_bytes;
			blocks += tree->nodes[j].blocks;
		}
		assert_true(children <= node->size_bytes);
		/* Everything ends in the allocator, so nothing is lost on the way down. */
		if (!bottom_up && blocks) {
			assert_int_equal(children, node->size_bytes);
			assert_int_equal(blocks, node->blocks);
		}
	}
	assert_int_equal(roots, view->report->total.size_bytes);
	report_tree__free(tree);
}

static void test_trees(void **state)
{
	static const double shares[] = { 0, 0.01, 0.2, 1 };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(shares); i++) {
		struct view view =
			open_view(case_study__new(), (struct filter_options){ 0 }, COST_BYTES);

		check_tree(&view, i % 2, shares[i / 2]);
		close_view(&view);
		view = open_view(fixture__new(), (struct filter_options){ 0 }, COST_BYTES);
		check_tree(&view, i % 2, shares[i / 2]);
		close_view(&view);
	}
}

/* Random stacks over few frames: recursion, prefixes of one another, ranges of every length. */
static struct profile *random_profile(unsigned int seed, bool is_huge)
{
	struct profile *profile = profile__new();
	__u32 id, thread;

	srand(seed);
	profile__add_module(profile, "/usr/bin/app", "", &id);
	profile__add_process(profile, 0, 1, 1, "app", &id);
	profile__add_thread(profile, id, "app", &thread);
	for (__u32 i = 1; i <= 4; i++) {
		char name[8];

		profile__add_frame(profile, 1, i, false, &id);
		snprintf(name, sizeof(name), "f%u", i);
		fixture__name_frame(profile, id, name);
	}
	for (int i = 0; i < 200; i++) {
		__u32 frames[12], n = rand() % 12, count;

		for (__u32 j = 0; j < n; j++)
			frames[j] = 1 + rand() % 4;
		profile__add_stack(profile, frames, n, AP_END_COMPLETE, &id);
		profile__add_count(profile, thread, id, rand() % 3, 1 + rand() % 9,
				   is_huge ? PROFILE_MAX : 1ULL + rand() % 1000, &count);
	}
	return profile;
}

static void test_random_trees(void **state)
{
	for (unsigned int seed = 1; seed <= 50; seed++) {
		struct profile *profile = random_profile(seed, false);
		struct view view;

		view = open_view(profile, (struct filter_options){ 0 }, COST_BYTES);
		check_tree(&view, false, 0);
		check_tree(&view, true, 0);
		check_tree(&view, false, 0.05);
		check_tree(&view, true, 0.05);
		close_view(&view);
	}
}

/* Each stack alone has as much as a sum can hold, so that each sum has just this. */
static void test_huge_trees(void **state)
{
	for (int bottom_up = 0; bottom_up < 2; bottom_up++) {
		const struct report_tree_options options = { COST_BYTES, bottom_up, 0 };
		struct view view = open_view(random_profile(1, true), (struct filter_options){ 0 },
					     COST_BYTES);
		struct report_tree *tree = report_tree__new(view.report, view.groups, &options);

		assert_non_null(tree);
		assert_true(tree->n_nodes > 100);
		for (size_t i = 0; i < tree->n_nodes; i++)
			assert_int_equal(tree->nodes[i].size_bytes, PROFILE_MAX);
		report_tree__free(tree);
		close_view(&view);
	}
}

static void test_histograms(void **state)
{
	struct view view = open_view(case_study__new(), (struct filter_options){ .leaks = true },
				     COST_LIVE_BYTES);
	__u64 sizes[PROFILE_BUCKETS], lifetimes[PROFILE_BUCKETS], sum = 0;

	report__histograms(view.report, &view.filtered, sizes, lifetimes);
	assert_int_equal(sizes[6], 50000);
	assert_int_equal(sizes[7], 5000);
	assert_int_equal(sizes[8], 0);
	assert_int_equal(sizes[13], 1);
	for (size_t i = 0; i < PROFILE_BUCKETS; i++)
		sum += lifetimes[i];
	assert_int_equal(sum, 49500);
	close_view(&view);
}

/* A function leaks below one caller after the other, each of which stops. */
static struct profile *make_moving_leak(__u32 n_callers, __u32 epochs_each)
{
	struct profile *profile = profile__new();
	__u32 frames[2], id, thread, stack;
	int err;

	assert_non_null(profile);
	err = profile__add_process(profile, 0, 1, 1, "server", &id);
	err |= profile__add_thread(profile, id, "server", &thread);
	err |= profile__add_frame(profile, 0, 0x1000, false, &frames[0]);
	assert_int_equal(err, 0);
	for (__u32 i = 0; i < n_callers; i++) {
		struct profile_line line = { 0 };
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		err |= profile__add_frame(profile, 0, 0x2000 + i, false, &frames[1]);
		err |= profile__add_function(profile, name, name, name, &line.function);
		err |= profile__set_frame_lines(profile, frames[1], &line, 1);
		err |= profile__add_stack(profile, frames, 2, AP_END_COMPLETE, &stack);
		err |= profile__add_count(profile, thread, stack, AP_MALLOC, epochs_each,
					  100ULL * epochs_each, &id);
		err |= profile__add_blocks(profile, &(struct profile_blocks){
							    .count = id,
							    .allocations = epochs_each,
							    .size_bytes = 100ULL * epochs_each,
						    });
		for (__u32 j = 0; j < epochs_each; j++)
			err |= fixture__add_lifetime(profile, id, i * epochs_each + j, PROFILE_LIVE,
						     1, 100);
	}
	err |= profile__set_meta(profile, "epoch_ns", "500000000");
	err |= profile__set_meta(profile, "elapsed_seconds", "200.000000");
	assert_int_equal(err, 0);
	return profile;
}

static void test_growing_in_sum(void **state)
{
	const __u32 n_callers = 10;
	struct view view = open_view(make_moving_leak(n_callers, 400 / n_callers),
				     (struct filter_options){ .leaks = true }, COST_LIVE_BYTES);
	const struct report *report = view.report;

	assert_int_equal(report->n_entries, n_callers);
	for (size_t i = 0; i < report->n_entries; i++)
		assert_int_not_equal(report->entries[i].growth.verdict, GROWTH_GROWING);
	assert_int_equal(report->n_growing, 1);
	assert_int_equal(report->growing[0].n_entries, n_callers);
	assert_float_equal(report->growing[0].growth.bytes_per_second, 200, 1);
	assert_string_equal(view.groups->labels[report->growing[0].label].text, "[unknown]");
	close_view(&view);
	/* One stack has no sum. */
	view = open_view(make_moving_leak(1, 400), (struct filter_options){ .leaks = true },
			 COST_LIVE_BYTES);
	assert_int_equal(view.report->n_growing, 0);
	assert_int_equal(view.report->entries[0].growth.verdict, GROWTH_GROWING);
	close_view(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing_in_sum),	    cmocka_unit_test(test_sums),
		cmocka_unit_test(test_functions_are_apart), cmocka_unit_test(test_trees),
		cmocka_unit_test(test_random_trees),	    cmocka_unit_test(test_huge_trees),
		cmocka_unit_test(test_histograms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
