// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "error.h"
#include "fixture.h"
#include "profile.h"

static void test_same_thing_same_id(void **state)
{
	struct profile *profile = profile__new();
	__u32 module, again, other, frame, frame_again, stack, stack_again, empty;

	assert_int_equal(profile__add_module(profile, "/a", "01", &module), 0);
	assert_int_equal(profile__add_module(profile, "/a", "02", &other), 0);
	assert_int_equal(profile__add_module(profile, "/a", "01", &again), 0);
	assert_int_equal(module, 1);
	assert_int_equal(other, 2);
	assert_int_equal(again, 1);
	assert_int_equal(profile__add_frame(profile, 1, 16, false, &frame), 0);
	assert_int_equal(profile__add_frame(profile, 0, 16, false, &other), 0);
	assert_int_equal(profile__add_frame(profile, 1, 16, false, &frame_again), 0);
	assert_int_equal(frame, frame_again);
	assert_int_not_equal(frame, other);
	assert_int_equal(profile__add_stack(profile, &frame, 1, AP_END_COMPLETE, &stack), 0);
	assert_int_equal(profile__add_stack(profile, &frame, 1, AP_END_MAX_DEPTH, &other), 0);
	assert_int_equal(profile__add_stack(profile, NULL, 0, AP_END_COMPLETE, &empty), 0);
	assert_int_equal(profile__add_stack(profile, &frame, 1, AP_END_COMPLETE, &stack_again), 0);
	assert_int_equal(stack, stack_again);
	assert_int_not_equal(stack, other);
	assert_int_not_equal(stack, empty);
	profile__free(profile);
}

static void test_ids_that_do_not_exist(void **state)
{
	struct profile *profile = profile__new();
	__u32 id = 77, frame = 1;

	assert_int_equal(profile__add_frame(profile, 1, 0, false, &id), -EINVAL);
	assert_int_equal(profile__add_stack(profile, &frame, 1, AP_END_COMPLETE, &id), -EINVAL);
	assert_int_equal(profile__add_stack(profile, NULL, 0, AP_STACK_ENDS, &id), -EINVAL);
	assert_int_equal(profile__add_count(profile, 1, 1, AP_MALLOC, 1, 1, &id), -EINVAL);
	assert_int_equal(profile__add_process(profile, 1, 1, 0, "x", &id), -EINVAL);
	assert_int_equal(profile__add_thread(profile, 1, "x", &id), -EINVAL);
	assert_int_equal(profile__set_frame_lines(profile, 1, NULL, 0), -EINVAL);
	assert_int_equal(profile__set_module_symbols(profile, 1, "x"), -EINVAL);
	assert_int_equal(profile__add_blocks(profile, &(struct profile_blocks){ .count = 1 }),
			 -EINVAL);
	assert_int_equal(fixture__add_lifetime(profile, 1, 0, 0, 1, 1), -EINVAL);
	assert_int_equal(id, 77);
	profile__free(profile);
}

static void test_counts_add_up_and_stop(void **state)
{
	struct profile *profile = profile__new();
	__u32 id;

	assert_int_equal(profile__add_process(profile, 0, 1, 0, "x", &id), 0);
	assert_int_equal(profile__add_thread(profile, 1, "x", &id), 0);
	assert_int_equal(profile__add_stack(profile, NULL, 0, AP_END_COMPLETE, &id), 0);
	assert_int_equal(profile__add_count(profile, 1, 1, AP_MALLOC, 2, 10, &id), 0);
	assert_int_equal(profile__add_count(profile, 1, 1, AP_MALLOC, 3, 20, &id), 0);
	assert_int_equal(profile->n_counts, 1);
	assert_int_equal(profile->counts[0].calls, 5);
	assert_int_equal(profile->counts[0].size_bytes, 30);
	assert_int_equal(profile__add_count(profile, 1, 1, AP_MALLOC, 1, UINT64_MAX, &id), 0);
	assert_int_equal(profile__add_count(profile, 1, 1, AP_MALLOC, 1, UINT64_MAX, &id), 0);
	assert_true(profile->counts[0].size_bytes == PROFILE_MAX);
	profile__free(profile);
}

static void test_lines_of_a_frame(void **state)
{
	struct profile *profile = profile__new();
	struct profile_line lines[2] = { { .file = 1, .line = 7, .inlined = true } };
	const struct profile_function *function;
	__u32 id;

	profile__add_frame(profile, 0, 1, false, &id);
	profile__add_function(profile, "_Z1fv", "f", "f()", &lines[0].function);
	profile__add_function(profile, "_Z1gv", "g", "g()", &lines[1].function);
	assert_int_equal(profile__set_frame_lines(profile, 1, lines, 2), -EINVAL);
	profile__add_file(profile, "/f.cc", &id);
	assert_null(profile__frame_function(profile, &profile->frames[0]));
	assert_int_equal(profile__set_frame_lines(profile, 1, lines, 1), -EINVAL);
	assert_int_equal(profile__set_frame_lines(profile, 1, lines, 2), 0);
	function = profile__frame_function(profile, &profile->frames[0]);
	assert_string_equal(function->name, "g");
	assert_int_equal(profile->frames[0].lines[0].line, 7);
	profile__free(profile);
}

static void test_a_function_is_known_by_its_symbol(void **state)
{
	struct profile *profile = profile__new();
	__u32 f, g, id;

	assert_int_equal(profile__add_function(profile, "_Z1fv", "f", "f()", &f), 0);
	assert_int_equal(profile__add_function(profile, "_Z1fv", "_Z1fv", "_Z1fv", &id), 0);
	assert_int_equal(id, f);
	assert_int_equal(profile__add_function(profile, "_Z1fv", "other", "other()", &id), 0);
	assert_int_equal(id, f);
	assert_string_equal(profile->functions[f - 1].name, "f");
	assert_string_equal(profile->functions[f - 1].full_name, "f()");
	assert_int_equal(profile__add_function(profile, "_Z1gv", "_Z1gv", "_Z1gv", &g), 0);
	assert_int_not_equal(g, f);
	assert_int_equal(profile__add_function(profile, "_Z1gv", "g", "g()", &id), 0);
	assert_int_equal(id, g);
	assert_string_equal(profile->functions[g - 1].name, "g");
	assert_int_equal(profile->n_functions, 2);
	profile__free(profile);
}

/* The lifetime at index @i. */
static void assert_lifetime(const struct profile *profile, size_t i, __u32 count, __u32 born,
			    __u32 died, __u64 blocks, __u64 size_bytes)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	for (size_t j = 0; j <= i; j++)
		assert_true(profile__next_lifetime(profile, &at, &lifetime));
	assert_int_equal(lifetime.count, count);
	assert_int_equal(lifetime.born, born);
	assert_int_equal(lifetime.died, died);
	assert_true(lifetime.blocks == blocks);
	assert_true(lifetime.size_bytes == size_bytes);
}

/* Blocks are freed, or go with their process, or stay; the epochs of all three are folded. */
static void test_exits(void **state)
{
	struct profile *profile = fixture__new();
	struct profile_lifetime lifetimes[] = {
		{ 1, 4, 9, PROFILE_LIVE, 1, 10 },
		{ 1, 4, PROFILE_LIVE, 9, 2, 20 },
		{ 1, 4, PROFILE_LIVE, PROFILE_LIVE, 3, 30 },
		{ 1, 4, PROFILE_LIVE, UINT32_MAX - 1, 4, 40 },
	};
	const __u32 last[] = { 9, 9, PROFILE_LIVE, UINT32_MAX - 1 };
	const size_t n = sizeof(lifetimes) / sizeof(lifetimes[0]);
	struct profile_lifetime got, both = { 1, 4, 9, 9, 1, 1 }, early = { 1, 4, PROFILE_LIVE, 3 };
	__u32 at = 0, folded_at;

	for (int i = 0; i < 3; i++)
		assert_true(profile__next_lifetime(profile, &at, &got));
	folded_at = at;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(profile__add_lifetime(profile, &lifetimes[i]), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(profile__next_lifetime(profile, &at, &got));
		assert_memory_equal(&got, &lifetimes[i], sizeof(got));
		assert_int_equal(profile_lifetime__end_epoch(&got), last[i]);
	}
	assert_false(profile__next_lifetime(profile, &at, &got));
	assert_int_equal(profile__last_epoch(profile), UINT32_MAX - 1);
	assert_int_equal(profile__add_lifetime(profile, &both), -EINVAL);
	assert_int_equal(profile__add_lifetime(profile, &early), -EINVAL);
	profile__fold_lifetimes(profile, 1);
	for (size_t i = 0; i < n; i++) {
		assert_true(profile__next_lifetime(profile, &folded_at, &got));
		assert_int_equal(got.born, 2);
		assert_int_equal(got.died, profile__fold_epoch(lifetimes[i].died, 1));
		assert_int_equal(got.exited, profile__fold_epoch(lifetimes[i].exited, 1));
	}
	profile__free(profile);
}

/* They are added up as before, and others are new. */
static void test_closed_counts(void **state)
{
	struct profile *profile = fixture__new();
	const struct profile_count first = profile->counts[0];
	size_t n = profile->n_counts;
	__u32 thread, id;

	profile__close_counts(profile);
	assert_int_equal(
		profile__add_count(profile, first.thread, first.stack, first.function, 5, 50, &id),
		0);
	assert_int_equal(id, first.id);
	assert_true(profile->counts[0].calls == first.calls + 5);
	assert_int_equal(profile->n_counts, n);
	assert_int_equal(profile__add_thread(profile, first.process, "later", &thread), 0);
	assert_int_equal(
		profile__add_count(profile, thread, first.stack, first.function, 1, 1, &id), 0);
	assert_int_equal(id, n + 1);
	assert_int_equal(
		profile__add_count(profile, thread, first.stack, first.function, 1, 1, &id), 0);
	assert_int_equal(id, n + 1);
	profile__free(profile);
}

static void test_blocks(void **state)
{
	struct profile *profile = fixture__new();
	struct profile_blocks blocks;
	struct timeline_sample earlier = { .time_ns = 2000000000 };

	assert_false(profile__count_blocks(profile, &profile->counts[1], &blocks));
	assert_true(profile__count_blocks(profile, &profile->counts[0], &blocks));
	assert_int_equal(profile_blocks__live(&blocks), 3);
	assert_int_equal(profile_blocks__live_bytes(&blocks), 300);
	assert_int_equal(profile->n_lifetimes, 3);
	assert_int_equal(fixture__add_lifetime(profile, 1, 0, 7, 1, 100), 0);
	assert_int_equal(profile->n_lifetimes, 4);
	assert_int_equal(fixture__add_lifetime(profile, 1, 8, 7, 1, 100), -EINVAL);
	assert_int_equal(fixture__add_lifetime(profile, 2, UINT32_MAX - 1, UINT32_MAX - 1,
					       PROFILE_MAX, PROFILE_MAX),
			 0);
	assert_lifetime(profile, 3, 1, 0, 7, 1, 100);
	assert_lifetime(profile, 4, 2, UINT32_MAX - 1, UINT32_MAX - 1, PROFILE_MAX, PROFILE_MAX);
	profile__fold_lifetimes(profile, 2);
	assert_int_equal(profile->n_lifetimes, 5);
	assert_lifetime(profile, 3, 1, 0, 1, 1, 100);
	assert_lifetime(profile, 4, 2, UINT32_MAX >> 2, UINT32_MAX >> 2, PROFILE_MAX, PROFILE_MAX);
	assert_int_equal(profile__add_timeline_sample(profile, &earlier), -EINVAL);
	profile__free(profile);
}

/* Each number of its own, so that none can be taken for another; small ones, large ones and the largest. */
static void number_blocks(struct profile_blocks *blocks, __u64 first)
{
	__u64 *values[] = { &blocks->failed,	      &blocks->allocations,
			    &blocks->size_bytes,      &blocks->frees,
			    &blocks->freed_bytes,     &blocks->discarded,
			    &blocks->discarded_bytes, &blocks->temporary,
			    &blocks->temporary_bytes, &blocks->peak,
			    &blocks->peak_bytes };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		*values[i] = first + i;
	for (size_t i = 0; i < PROFILE_BUCKETS; i++) {
		blocks->sizes[i] = first + 100 + i;
		blocks->lifetimes[i] = first + 200 + i;
	}
}

static void test_blocks_add_up(void **state)
{
	static const __u64 firsts[] = { 0, 1, 120, 128, 16000, 1ULL << 32, PROFILE_MAX - 1000 };
	struct profile *profile = fixture__new();
	struct profile_blocks blocks, expected;

	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		struct profile_blocks more = { .count = 2, .oldest_ns = 1000 - i };

		number_blocks(&more, firsts[i]);
		profile__count_blocks(profile, &profile->counts[1], &expected);
		assert_int_equal(profile__add_blocks(profile, &more), 0);
		assert_true(profile__count_blocks(profile, &profile->counts[1], &blocks));
		assert_true(blocks.failed == profile__add_up(expected.failed, more.failed));
		assert_true(blocks.peak_bytes ==
			    profile__add_up(expected.peak_bytes, more.peak_bytes));
		for (size_t j = 0; j < PROFILE_BUCKETS; j++) {
			assert_true(blocks.sizes[j] ==
				    profile__add_up(expected.sizes[j], more.sizes[j]));
			assert_true(blocks.lifetimes[j] ==
				    profile__add_up(expected.lifetimes[j], more.lifetimes[j]));
		}
		assert_int_equal(blocks.oldest_ns, 1000 - i);
	}
	/* What the neighbours have stays. */
	assert_true(profile__count_blocks(profile, &profile->counts[0], &blocks));
	assert_int_equal(profile_blocks__live(&blocks), 3);
	profile__free(profile);
}

static void test_ledger(void **state)
{
	struct profile *profile = fixture__new();
	__u32 id;

	assert_non_null(profile);
	assert_int_equal(profile__ledger(profile, "events"), 45);
	assert_int_equal(profile__ledger(profile, "attributed"), 42);
	assert_int_equal(profile__ledger(profile, "complete"), 33);
	assert_int_equal(profile__ledger(profile, "incomplete"), 9);
	assert_int_equal(profile__ledger(profile, "incomplete_no_mapping"), 3);
	assert_int_equal(profile__ledger(profile, "lost"), 3);
	assert_int_equal(profile__ledger(profile, "lost_ring_full"), 2);
	assert_int_equal(profile__ledger(profile, "no such name"), 0);
	assert_true(profile__ledger_adds_up(profile));
	profile__set_ledger(profile, "events", 46);
	assert_false(profile__ledger_adds_up(profile));
	profile__set_ledger(profile, "events", 45);
	profile__add_count(profile, 1, 1, AP_MALLOC, 1, 1, &id);
	assert_false(profile__ledger_adds_up(profile));
	profile__free(profile);
}

static void test_meta_is_replaced(void **state)
{
	struct profile *profile = profile__new();

	assert_null(profile__meta(profile, "k"));
	assert_int_equal(profile__set_meta(profile, "k", "1"), 0);
	assert_int_equal(profile__set_meta(profile, "k", "2"), 0);
	assert_string_equal(profile__meta(profile, "k"), "2");
	assert_int_equal(profile->n_meta, 1);
	profile__free(profile);
}

static void test_names_go_both_ways(void **state)
{
	for (int i = 0; i < AP_DEFINED; i++)
		assert_int_equal(profile__function_by_name(profile__function_name(i)), i);
	for (int i = 0; i < AP_STACK_ENDS; i++)
		assert_int_equal(profile__stack_end_by_name(profile__stack_end_name(i)), i);
	assert_int_equal(profile__function_by_name("nonsense"), -ENOENT);
}

static void test_many_stacks(void **state)
{
	enum {
		FRAMES = 1000,
		STACKS = 50000,
		DEPTH = 20
	};
	struct profile *profile = profile__new();
	__u32 frames[DEPTH], id;

	for (int i = 0; i < FRAMES; i++)
		assert_int_equal(profile__add_frame(profile, 0, i, false, &id), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < STACKS; i++) {
			for (int j = 0; j < DEPTH; j++)
				frames[j] = 1 + (j < 2 ? (j ? i / FRAMES : i % FRAMES) : j);
			assert_int_equal(
				profile__add_stack(profile, frames, DEPTH, AP_END_COMPLETE, &id),
				0);
			assert_int_equal(id, i + 1);
		}
	}
	assert_int_equal(profile->n_stacks, STACKS);
	profile__free(profile);
}

/* The first count has 9 blocks of 10 calls, of which one failed. */
static void test_figures_that_contradict_each_other(void **state)
{
	static const struct profile_blocks wrong[] = {
		{ .failed = 1 },
		{ .peak = 6 },
		{ .peak_bytes = 501 },
		{ .lifetimes = { [1] = 1 } },
		/* More blocks in the histogram than there are. */
		{ .sizes = { [10] = 1 } },
	};
	static const struct profile_lifetime wrong_epochs[] = {
		{ .born = 1, .died = 1, .blocks = 4, .size_bytes = 0 },
		{ .born = 1, .died = 1, .blocks = 0, .size_bytes = 1000 },
		{ .born = 1, .died = PROFILE_LIVE, .blocks = 1, .size_bytes = 100 },
	};
	const struct profile_blocks saturated = { .count = 1, .peak = PROFILE_MAX };
	struct profile *profile = fixture__new();

	assert_true(profile__blocks_add_up(profile));
	assert_int_equal(profile__add_blocks(profile, &saturated), 0);
	assert_true(profile__blocks_add_up(profile));
	profile__free(profile);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct profile_blocks more = wrong[i];

		profile = fixture__new();
		more.count = 1;
		assert_int_equal(profile__add_blocks(profile, &more), 0);
		if (profile__blocks_add_up(profile))
			fail_msg("blocks %zu add up", i);
		/* Estimates are rounded. */
		profile__set_meta(profile, "sample_bytes", "512");
		assert_true(profile__blocks_add_up(profile));
		profile__free(profile);
	}
	for (size_t i = 0; i < sizeof(wrong_epochs) / sizeof(wrong_epochs[0]); i++) {
		const struct profile_lifetime *more = &wrong_epochs[i];

		profile = fixture__new();
		assert_int_equal(fixture__add_lifetime(profile, 1, more->born, more->died,
						       more->blocks, more->size_bytes),
				 0);
		if (profile__blocks_add_up(profile))
			fail_msg("epochs %zu add up", i);
		profile__free(profile);
	}
}

/* As many frames of one hash would take a minute, if a search for room went past all of them. */
static void test_many_frames_at_one_address(void **state)
{
	enum {
		FRAMES = 500000
	};
	struct profile *profile = profile__new();
	__u32 id;

	for (int i = 0; i < FRAMES; i++) {
		assert_int_equal(profile__add_other_frame(profile, 16, i % 2, &id), 0);
		assert_int_equal(id, i + 1);
		assert_int_equal(profile->frames[i].id, id);
	}
	assert_int_equal(profile__find_frame(profile, 0, 16, false)->id, 1);
	assert_int_equal(profile__find_frame(profile, 0, 16, true)->id, 2);
	assert_null(profile__find_frame(profile, 0, 17, false));
	profile__free(profile);
}

static void test_error_text(void **state)
{
	struct error error = { 0 };
	char longer[2000];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(error__set(&error, -EIO, "inner %d", 1), -EIO);
	assert_int_equal(error__wrap(&error, -EIO, "outer %s", "two"), -EIO);
	assert_string_equal(error.text, "outer two: inner 1");
	error__wrap(&error, -EIO, "%s", longer);
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	error__wrap(&error, -EIO, "a");
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	assert_int_equal(error__set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(error__wrap(NULL, -EIO, "x"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_thing_same_id),
		cmocka_unit_test(test_ids_that_do_not_exist),
		cmocka_unit_test(test_counts_add_up_and_stop),
		cmocka_unit_test(test_lines_of_a_frame),
		cmocka_unit_test(test_a_function_is_known_by_its_symbol),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_closed_counts),
		cmocka_unit_test(test_blocks_add_up),
		cmocka_unit_test(test_figures_that_contradict_each_other),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_meta_is_replaced),
		cmocka_unit_test(test_names_go_both_ways),
		cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_many_frames_at_one_address),
		cmocka_unit_test(test_error_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
