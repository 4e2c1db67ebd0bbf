// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>

#include "profile.h"
#include "timeline.h"

/* Entries that were taken out of a struct lifetimes. */
struct taken {
	struct lifetime_key keys[32];
	struct ap_lifetime sums[32];
	size_t n;
};

static int take(void *context, const struct lifetime_key *key, const struct ap_lifetime *sum)
{
	struct taken *taken = context;

	assert_true(taken->n < 32);
	taken->keys[taken->n] = *key;
	taken->sums[taken->n++] = *sum;
	return 1;
}

static void take_all(struct lifetimes *lifetimes, struct taken *taken)
{
	taken->n = 0;
	assert_int_equal(lifetimes__move(lifetimes, take, taken), 0);
	for (size_t i = 0; i < taken->n; i++)
		assert_int_equal(taken->keys[i].shift, lifetimes__shift(lifetimes));
}

/* Those of record 7. */
static int take_some(void *context, const struct lifetime_key *key, const struct ap_lifetime *sum)
{
	return key->record == 7 ? take(context, key, sum) : 0;
}

static __u64 blocks_of(const struct taken *taken, __u32 record, __u32 born, __u32 died)
{
	__u64 blocks = 0;

	for (size_t i = 0; i < taken->n; i++)
		if (taken->keys[i].record == record && taken->keys[i].born == born &&
		    taken->keys[i].died == died)
			blocks += taken->sums[i].blocks;
	return blocks;
}

static void add_first(struct lifetimes *lifetimes)
{
	struct lifetime_key key = {
		.record = 7,
		.shift = AP_FIRST_EPOCH_SHIFT,
		.exited = PROFILE_LIVE,
	};

	for (key.born = 0; key.born < 8; key.born++) {
		key.died = key.born + 1;
		assert_int_equal(lifetimes__add(lifetimes, &key, 1, 10), 0);
	}
	key.born = 5;
	key.died = PROFILE_LIVE;
	assert_int_equal(lifetimes__add(lifetimes, &key, 2, 20), 0);
	assert_int_equal(lifetimes__add(lifetimes, &key, 1, 10), 0);
}

static void test_adds_up(void **state)
{
	struct lifetimes *lifetimes = lifetimes__new();
	struct taken taken;

	add_first(lifetimes);
	take_all(lifetimes, &taken);
	assert_int_equal(taken.n, 9);
	assert_int_equal(blocks_of(&taken, 7, 5, 6), 1);
	assert_int_equal(blocks_of(&taken, 7, 5, PROFILE_LIVE), 3);
	lifetimes__free(lifetimes);
}

/* What stays is found again, and what is added later is added to it. */
static void test_moves_some(void **state)
{
	struct lifetimes *lifetimes = lifetimes__new();
	struct lifetime_key key = { 8, AP_FIRST_EPOCH_SHIFT, 3, 4, PROFILE_LIVE };
	struct taken taken = { 0 };

	assert_int_equal(lifetimes__add(lifetimes, &key, 1, 1), 0);
	add_first(lifetimes);
	assert_int_equal(lifetimes__move(lifetimes, take_some, &taken), 0);
	assert_int_equal(taken.n, 9);
	assert_int_equal(blocks_of(&taken, 8, 3, 4), 0);
	assert_int_equal(lifetimes__add(lifetimes, &key, 2, 1), 0);
	take_all(lifetimes, &taken);
	assert_int_equal(taken.n, 1);
	assert_int_equal(blocks_of(&taken, 8, 3, 4), 3);
	lifetimes__free(lifetimes);
}

/* Blocks that an exit ended are kept apart from freed and from live ones, and are folded as these are. */
static void test_exits(void **state)
{
	struct lifetimes *lifetimes = lifetimes__new();
	struct lifetime_key key = { 7, AP_FIRST_EPOCH_SHIFT, 5, PROFILE_LIVE, 12 };
	struct taken taken;

	add_first(lifetimes);
	assert_int_equal(lifetimes__add(lifetimes, &key, 10, 1), 0);
	key.exited = 13;
	assert_int_equal(lifetimes__add(lifetimes, &key, 100, 1), 0);
	key = (struct lifetime_key){ 7, AP_FIRST_EPOCH_SHIFT + 1, 2, 6, PROFILE_LIVE };
	assert_int_equal(lifetimes__add(lifetimes, &key, 1000, 1), 0);
	take_all(lifetimes, &taken);
	for (size_t i = 0; i < taken.n; i++) {
		const struct lifetime_key *at = &taken.keys[i];

		if (at->exited != PROFILE_LIVE) {
			assert_int_equal(at->born, 2);
			assert_int_equal(at->died, PROFILE_LIVE);
			assert_int_equal(at->exited, 6);
			assert_int_equal(taken.sums[i].blocks, 110);
		} else if (at->died == 6) {
			assert_int_equal(taken.sums[i].blocks, 1000);
		}
	}
	assert_int_equal(blocks_of(&taken, 7, 2, PROFILE_LIVE), 3 + 110);
	lifetimes__free(lifetimes);
}

static int refuse(void *context, const struct lifetime_key *key, const struct ap_lifetime *sum)
{
	return -ENOMEM;
}

static void test_move_fails(void **state)
{
	struct lifetimes *lifetimes = lifetimes__new();

	add_first(lifetimes);
	assert_int_equal(lifetimes__move(lifetimes, refuse, NULL), -ENOMEM);
	lifetimes__free(lifetimes);
}

/* To epochs that are four times as long; what comes late in shorter ones is folded, too. */
static void test_folds(void **state)
{
	struct lifetimes *lifetimes = lifetimes__new();
	struct lifetime_key key = { 7, AP_FIRST_EPOCH_SHIFT + 2, 1, 2, PROFILE_LIVE };
	struct taken taken;

	add_first(lifetimes);
	assert_int_equal(lifetimes__add(lifetimes, &key, 100, 1), 0);
	key = (struct lifetime_key){ 7, AP_FIRST_EPOCH_SHIFT + 1, 2, 4, PROFILE_LIVE };
	assert_int_equal(lifetimes__add(lifetimes, &key, 1000, 1), 0);
	assert_int_equal(lifetimes__shift(lifetimes), AP_FIRST_EPOCH_SHIFT + 2);
	take_all(lifetimes, &taken);
	assert_int_equal(blocks_of(&taken, 7, 0, 0), 3);
	assert_int_equal(blocks_of(&taken, 7, 0, 1), 1);
	assert_int_equal(blocks_of(&taken, 7, 1, 1), 3);
	assert_int_equal(blocks_of(&taken, 7, 1, 2), 1 + 100 + 1000);
	assert_int_equal(blocks_of(&taken, 7, 1, PROFILE_LIVE), 3);
	assert_int_equal(blocks_of(&taken, 8, 1, 2), 0);
	lifetimes__free(lifetimes);
}

static void test_absurd_shift(void **state)
{
	struct lifetimes *lifetimes = lifetimes__new();
	struct lifetime_key key = { 1, AP_FIRST_EPOCH_SHIFT, 1023, 1023, PROFILE_LIVE };
	struct taken taken;

	assert_int_equal(lifetimes__add(lifetimes, &key, 1, 1), 0);
	key.shift = 63;
	key.born = key.died = 0;
	assert_int_equal(lifetimes__add(lifetimes, &key, 1, 1), 0);
	take_all(lifetimes, &taken);
	assert_int_equal(blocks_of(&taken, 1, 0, 0), 2);
	lifetimes__free(lifetimes);
}

/* As a recording does: a sample whenever one is due. */
static void record(struct timeline *timeline, __u64 end_ns)
{
	struct timeline_sample sample = { 0 };

	while (sample.time_ns < end_ns) {
		assert_int_equal(timeline__add(timeline, &sample), 0);
		sample.time_ns += timeline__due_ns(timeline, sample.time_ns);
	}
}

static void test_timeline_grows(void **state)
{
	static const __u64 lengths_ms[] = { 200, 1000, 60000, 3600000 };

	for (size_t i = 0; i < sizeof(lengths_ms) / sizeof(lengths_ms[0]); i++) {
		struct timeline timeline = { 0 };

		record(&timeline, lengths_ms[i] * 1000000);
		assert_in_range(timeline.n, TIMELINE_SAMPLES / 2, TIMELINE_SAMPLES);
		assert_int_equal(timeline.samples[0].time_ns, 0);
		for (size_t j = 1; j < timeline.n; j++)
			assert_int_equal(timeline.samples[j].time_ns -
						 timeline.samples[j - 1].time_ns,
					 timeline.step_ns);
		timeline__release(&timeline);
	}
}

static void test_timeline_interval(void **state)
{
	struct timeline timeline = { .interval_ns = 1000000 };
	struct timeline_sample late = { .time_ns = 1000000000, .live = 3 };

	record(&timeline, 1000000000);
	assert_int_equal(timeline.n, 1000);
	assert_int_equal(timeline__add(&timeline, &late), 0);
	/* The last one's own successor at the same time. */
	late.live = 4;
	assert_int_equal(timeline__add(&timeline, &late), 0);
	assert_int_equal(timeline.n, 1001);
	assert_int_equal(timeline.samples[1000].live, 4);
	timeline__pause(&timeline, 50000000);
	assert_int_equal(timeline__due_ns(&timeline, late.time_ns), 50000000);
	timeline__release(&timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adds_up),		  cmocka_unit_test(test_folds),
		cmocka_unit_test(test_moves_some),	  cmocka_unit_test(test_move_fails),
		cmocka_unit_test(test_absurd_shift),	  cmocka_unit_test(test_timeline_grows),
		cmocka_unit_test(test_timeline_interval), cmocka_unit_test(test_exits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
