// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "fixture.h"
#include "growth.h"
#include "profile.h"

/* Half a second each. */
#define EPOCHS	    400U
#define EPOCH_NS    "500000000"
#define SECONDS	    "200.000000"
#define BLOCK_BYTES 100

/* Kinds of stacks, a group each. */
enum kind {
	STARTUP,	       /* once, at the beginning */
	LEAK,		       /* a block in each epoch */
	RARE_LEAK,	       /* a block in every 40th */
	STOPPED,	       /* a leak until 60 % */
	STEP,		       /* much at once, at 75 % */
	LATE_STEP,	       /* much at once, at 90 % */
	CACHE,		       /* each block is freed 20 epochs later */
	SAWTOOTH,	       /* fills for 40 epochs, and is emptied */
	LEAKY_SAWTOOTH,	       /* so that one of its blocks stays each time */
	SHRINKING,	       /* what was there at the beginning is freed bit by bit */
	NEVER_FREED_UNTIL_NOW, /* grows, and is freed in the last epoch */
	KINDS,
};

static bool is_growing(const struct growth *growth)
{
	return growth->verdict == GROWTH_GROWING;
}

static int add_epoch(struct profile *profile, __u32 epoch)
{
	const __u32 emptied = (epoch / 40 + 1) * 40;
	int err = 0;

#define ADD(kind, died, n)                                                                         \
	(err |= fixture__add_lifetime(profile, (kind) + 1, epoch, died, n, (n)*BLOCK_BYTES))
#define OR_STAYS(died) ((died) < EPOCHS ? (died) : PROFILE_LIVE)
	if (!epoch)
		ADD(STARTUP, PROFILE_LIVE, 1000ULL);
	ADD(LEAK, PROFILE_LIVE, 1ULL);
	if (epoch % 40 == 10)
		ADD(RARE_LEAK, PROFILE_LIVE, 1ULL);
	if (epoch < EPOCHS * 6 / 10)
		ADD(STOPPED, PROFILE_LIVE, 5ULL);
	if (epoch == EPOCHS * 3 / 4)
		ADD(STEP, PROFILE_LIVE, 1000ULL);
	if (epoch == EPOCHS * 9 / 10)
		ADD(LATE_STEP, PROFILE_LIVE, 1000ULL);
	ADD(CACHE, OR_STAYS(epoch + 20), 10ULL);
	ADD(SAWTOOTH, OR_STAYS(emptied), 10ULL);
	ADD(LEAKY_SAWTOOTH, OR_STAYS(emptied), 10ULL);
	ADD(LEAKY_SAWTOOTH, PROFILE_LIVE, 10ULL);
	if (!epoch)
		for (__u32 i = 1; i < EPOCHS; i++)
			ADD(SHRINKING, i, 1ULL);
	ADD(NEVER_FREED_UNTIL_NOW, EPOCHS - 1, 3ULL);
#undef ADD
#undef OR_STAYS
	return err;
}

static struct profile *make_profile(__u32 n_epochs, const char *elapsed)
{
	struct profile *profile = profile__new();
	__u32 id, frame, stack, thread;
	int err;

	assert_non_null(profile);
	err = profile__add_process(profile, 0, 1, 1, "server", &id);
	err |= profile__add_thread(profile, id, "server", &thread);
	for (int kind = 0; kind < KINDS; kind++) {
		err |= profile__add_frame(profile, 0, 0x1000 + kind, false, &frame);
		err |= profile__add_stack(profile, &frame, 1, AP_END_COMPLETE, &stack);
		err |= profile__add_count(profile, thread, stack, AP_MALLOC, 1, 1, &id);
	}
	/* All kinds, or a leak alone. */
	for (__u32 epoch = 0; epoch < n_epochs; epoch++)
		err |= n_epochs == EPOCHS ? add_epoch(profile, epoch)
					  : fixture__add_lifetime(profile, LEAK + 1, epoch,
								  PROFILE_LIVE, 1, BLOCK_BYTES);
	err |= profile__set_meta(profile, "epoch_ns", EPOCH_NS);
	err |= profile__set_meta(profile, "elapsed_seconds", elapsed);
	assert_int_equal(err, 0);
	return profile;
}

static const __u32 groups[KINDS] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

static void test_kinds(void **state)
{
	static const bool expected[KINDS] = {
		[LEAK] = true,
		[RARE_LEAK] = true,
		[LEAKY_SAWTOOTH] = true,
		[NEVER_FREED_UNTIL_NOW] = true,
	};
	struct profile *profile = make_profile(EPOCHS, SECONDS);
	struct growth growths[KINDS];
	struct error error;

	assert_int_equal(growth__measure(profile, groups, KINDS, 0, growths, &error), 0);
	for (int kind = 0; kind < KINDS; kind++) {
		assert_true(growths[kind].is_known);
		if (is_growing(&growths[kind]) != expected[kind])
			fail_msg("kind %d: growing is %d, by %f bytes/s", kind,
				 is_growing(&growths[kind]), growths[kind].bytes_per_second);
	}
	/* A block of 100 bytes every half of a second. */
	assert_float_equal(growths[LEAK].bytes_per_second, 200, 0.001);
	assert_float_equal(growths[STARTUP].bytes_per_second, 0, 0.001);
	assert_float_equal(growths[SHRINKING].bytes_per_second, -200, 0.001);
	assert_float_equal(growths[RARE_LEAK].bytes_per_second, 5, 0.5);
	profile__free(profile);
}

/* What a stack has live at the end of an epoch. The same recording is judged at each length from LEAST_LENGTH on, so nothing
 * depends on where in a period it ends. */
#define LEAST_LENGTH 520
#define MOST_LENGTH  1000

static __u32 noise(__u32 epoch, __u32 most)
{
	return (epoch * 2654435761U >> 16) % (most + 1);
}

static __u64 doubled(__u64 least, __u64 needed)
{
	while (least < needed)
		least *= 2;
	return least;
}

static __u64 linear(__u32 epoch)
{
	return epoch + 1;
}

static __u64 doubling(__u32 epoch)
{
	return doubled(1, 160ULL * epoch);
}

/* 1.5 times each time, as some vectors. */
static __u64 half_more(__u32 epoch)
{
	__u64 room = 4;

	while (room < 10ULL * epoch)
		room += room / 2;
	return room;
}

static __u64 hash_table(__u32 epoch)
{
	return doubled(1009, 7ULL * epoch * epoch);
}

static __u64 one_that_grows(__u32 epoch)
{
	return 4096 * (1 + epoch / 13);
}

static __u64 steps(__u32 epoch)
{
	return 1000 * (epoch / 60);
}

static __u64 above_a_base(__u32 epoch)
{
	return 1000000 + 10ULL * epoch + noise(epoch, 300);
}

static __u64 late_start(__u32 epoch)
{
	return epoch < LEAST_LENGTH * 85 / 100 ? 0 : epoch;
}

static __u64 leaky_sawtooth(__u32 epoch)
{
	return epoch * 10 + epoch % 40 * 10;
}

static __u64 once(__u32 epoch)
{
	return 5000;
}

static __u64 stopped(__u32 epoch)
{
	return epoch < 200 ? epoch : 200;
}

static __u64 bounded_doubling(__u32 epoch)
{
	return doubled(1, epoch < 180 ? epoch : 180);
}

static __u64 sawtooth(__u32 epoch)
{
	return epoch % 83 * 10;
}

static __u64 bursts(__u32 epoch)
{
	return epoch % 90 < 12 ? 1000 * (epoch % 90 + 1) : 0;
}

static __u64 full_cache(__u32 epoch)
{
	return 10 * (epoch < 100 ? epoch : 100) + noise(epoch, 100);
}

static __u64 few_of_any_size(__u32 epoch)
{
	return 100 + noise(epoch, 10000);
}

static __u64 shrinking(__u32 epoch)
{
	return 100 * (MOST_LENGTH - epoch);
}

static const struct {
	const char *name;
	__u64 (*live_bytes)(__u32 epoch);
	enum growth_verdict verdict;
	bool may_be_undecided;
	double bytes_per_epoch; /* 0: differs */
} shapes[] = {
	{ "linear", linear, GROWTH_GROWING, false, 1 },
	{ "doubling", doubling, GROWTH_GROWING, false, 160 },
	{ "half more", half_more, GROWTH_GROWING, false, 10 },
	{ "hash table", hash_table, GROWTH_GROWING, false, 0 },
	{ "one that grows", one_that_grows, GROWTH_GROWING, false, 4096 / 13.0 },
	{ "steps", steps, GROWTH_GROWING, false, 1000 / 60.0 },
	{ "above a base", above_a_base, GROWTH_GROWING, false, 10 },
	{ "late start", late_start, GROWTH_GROWING, false, 0 },
	{ "leaky sawtooth", leaky_sawtooth, GROWTH_GROWING, true, 0 },
	{ "once", once, GROWTH_NONE, false, 0 },
	{ "stopped", stopped, GROWTH_NONE, false, 0 },
	{ "bounded doubling", bounded_doubling, GROWTH_NONE, false, 0 },
	{ "sawtooth", sawtooth, GROWTH_NONE, true, 0 },
	{ "bursts", bursts, GROWTH_NONE, true, 0 },
	{ "full cache", full_cache, GROWTH_NONE, false, 0 },
	{ "few of any size", few_of_any_size, GROWTH_NONE, true, 0 },
	{ "shrinking", shrinking, GROWTH_NONE, false, 0 },
};

/* One block at a time, which is replaced where what is live changes. */
static void add_shape(struct profile *profile, __u32 count, __u64 (*live_bytes)(__u32), __u32 n)
{
	for (__u32 epoch = 0, next; epoch < n; epoch = next) {
		__u64 bytes = live_bytes(epoch);

		for (next = epoch + 1; next < n && live_bytes(next) == bytes; next++)
			;
		if (bytes)
			assert_int_equal(fixture__add_lifetime(profile, count, epoch,
							       next < n ? next : PROFILE_LIVE, 1,
							       bytes),
					 0);
	}
}

static void check_shape(size_t shape, __u32 n, const struct growth *growth)
{
	double expected = shapes[shape].bytes_per_epoch * 2, got = growth->bytes_per_second;

	if (growth->verdict != shapes[shape].verdict &&
	    !(shapes[shape].may_be_undecided && growth->verdict == GROWTH_UNDECIDED))
		fail_msg("%s, %u epochs: expected verdict %d, got %d, by %f bytes/s",
			 shapes[shape].name, n, shapes[shape].verdict, growth->verdict, got);
	if (expected && (got < expected / 1.6 || got > expected * 1.6))
		fail_msg("%s, %u epochs: expected %f bytes/s, got %f", shapes[shape].name, n,
			 expected, got);
}

static void test_shapes(void **state)
{
	static const __u32 one_group[KINDS] = { 1 };

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		for (__u32 n = LEAST_LENGTH; n <= MOST_LENGTH; n += 7) {
			struct profile *profile = make_profile(0, "1");
			struct growth growth;
			struct error error;
			char elapsed[32];

			add_shape(profile, 1, shapes[i].live_bytes, n);
			snprintf(elapsed, sizeof(elapsed), "%f", n / 2.0);
			assert_int_equal(profile__set_meta(profile, "elapsed_seconds", elapsed), 0);
			assert_int_equal(growth__measure(profile, one_group, 1, 0, &growth, &error),
					 0);
			check_shape(i, n, &growth);
			profile__free(profile);
		}
	}
}

/* What began in the last eighth may be a burst, and is not called one. */
static void test_too_late(void **state)
{
	static const __u32 one_group[KINDS] = { 1 };
	struct profile *profile = make_profile(0, SECONDS);
	struct growth growth;
	struct error error;

	for (__u32 epoch = EPOCHS * 92 / 100; epoch < EPOCHS; epoch++)
		assert_int_equal(fixture__add_lifetime(profile, 1, epoch, PROFILE_LIVE, 1, 100), 0);
	assert_int_equal(growth__measure(profile, one_group, 1, 0, &growth, &error), 0);
	assert_int_equal(growth.verdict, GROWTH_UNDECIDED);
	profile__free(profile);
}

/* What the program freed because it ended had grown until then. */
static void test_before(void **state)
{
	static const __u32 one_group[KINDS] = { 1 };
	struct profile *profile = make_profile(0, SECONDS);
	struct growth growth;
	struct error error;

	for (__u32 epoch = 0; epoch < EPOCHS * 7 / 10; epoch++)
		assert_int_equal(fixture__add_lifetime(profile, 1, epoch, EPOCHS * 7 / 10, 1, 100),
				 0);
	assert_int_equal(growth__measure(profile, one_group, 1, 0, &growth, &error), 0);
	assert_int_equal(growth.verdict, GROWTH_NONE);
	assert_int_equal(growth__measure(profile, one_group, 1, EPOCHS * 7 / 10, &growth, &error),
			 0);
	assert_int_equal(growth.verdict, GROWTH_GROWING);
	assert_float_equal(growth.bytes_per_second, 200, 1);
	profile__free(profile);
}

/* Processes that leak and end, one after the other, do not make memory grow; the last one does, while it runs. */
static void test_exits(void **state)
{
	struct profile *profile = make_profile(0, SECONDS);
	struct growth growths[KINDS];
	struct error error;

	for (__u32 epoch = 0; epoch < EPOCHS; epoch++) {
		struct profile_lifetime of_many = {
			LEAK + 1, epoch, PROFILE_LIVE, epoch / 20 * 20 + 19, 1, BLOCK_BYTES
		};
		struct profile_lifetime of_last = { RARE_LEAK + 1, epoch, PROFILE_LIVE,
						    PROFILE_LIVE,  1,	  BLOCK_BYTES };

		assert_int_equal(profile__add_lifetime(profile, &of_many), 0);
		assert_int_equal(profile__add_lifetime(profile, &of_last), 0);
	}
	assert_int_equal(growth__measure(profile, groups, KINDS, 0, growths, &error), 0);
	assert_true(growths[LEAK].is_known && !is_growing(&growths[LEAK]));
	assert_true(is_growing(&growths[RARE_LEAK]));
	profile__free(profile);
}

/* Stacks that print alike are one; what is in no group counts nowhere. */
static void test_groups(void **state)
{
	static const __u32 together[KINDS] = {
		[STARTUP] = 1, [LEAK] = 1, [SHRINKING] = 1, [STOPPED] = 2
	};
	struct profile *profile = make_profile(EPOCHS, SECONDS);
	struct growth growths[2];
	struct error error;

	assert_int_equal(growth__measure(profile, together, 2, 0, growths, &error), 0);
	/* Two kinds in one group: one gains what the other loses. */
	assert_float_equal(growths[0].bytes_per_second, 0, 0.001);
	assert_false(is_growing(&growths[0]));
	assert_false(is_growing(&growths[1]));
	profile__free(profile);
}

static void test_not_known(void **state)
{
	struct profile *short_one = make_profile(10, "5.000000");
	struct profile *damaged = make_profile(EPOCHS, "8999999999");
	struct growth growths[KINDS];
	struct error error;

	assert_int_equal(growth__measure(short_one, groups, KINDS, 0, growths, &error), 0);
	assert_false(growths[LEAK].is_known || is_growing(&growths[LEAK]));
	assert_int_equal(growth__measure(damaged, groups, KINDS, 0, growths, &error), 0);
	assert_false(growths[LEAK].is_known);
	profile__free(damaged);
	assert_int_equal(profile__set_meta(short_one, "epoch_ns", "none"), 0);
	assert_int_equal(growth__measure(short_one, groups, KINDS, 0, growths, &error), -EINVAL);
	profile__free(short_one);
}

/* A damaged file may say that memory grows by more than a number can hold. */
static void test_no_end(void **state)
{
	struct profile *profile = make_profile(16, "8.000000");
	struct growth growths[KINDS];
	struct error error;

	for (__u32 epoch = 0; epoch < 16; epoch++)
		assert_int_equal(fixture__add_lifetime(profile, RARE_LEAK + 1, epoch, PROFILE_LIVE,
						       1, PROFILE_MAX / 17),
				 0);
	assert_int_equal(profile__set_meta(profile, "epoch_ns", "1000"), 0);
	assert_int_equal(profile__set_meta(profile, "elapsed_seconds", "0.000016"), 0);
	assert_int_equal(growth__measure(profile, groups, KINDS, 0, growths, &error), 0);
	assert_true(is_growing(&growths[RARE_LEAK]));
	assert_true(growths[RARE_LEAK].bytes_per_second == (double)PROFILE_MAX);
	profile__free(profile);
}

/* Recordings go on after the last block for as long as they like, but no block is of an epoch after AP_MAX_EPOCHS. */
static void test_many_epochs(void **state)
{
	struct profile *quiet = make_profile(EPOCHS, "1025.000000");
	struct profile *longest = make_profile(2047, "1024.000000");
	struct profile *damaged = make_profile(2048, "1025.000000");
	struct growth growths[KINDS];
	struct error error;

	assert_int_equal(growth__measure(quiet, groups, KINDS, 0, growths, &error), 0);
	assert_true(growths[LEAK].is_known && !is_growing(&growths[LEAK]));
	assert_float_equal(growths[LEAK].bytes_per_second, 0, 0.001);
	assert_int_equal(growth__measure(longest, groups, KINDS, 0, growths, &error), 0);
	assert_true(growths[LEAK].is_known && is_growing(&growths[LEAK]));
	/* It has no lifetimes. */
	assert_true(growths[STARTUP].is_known && !is_growing(&growths[STARTUP]));
	assert_int_equal(growth__measure(damaged, groups, KINDS, 0, growths, &error), 0);
	assert_false(growths[LEAK].is_known || growths[STARTUP].is_known);
	profile__free(quiet);
	profile__free(longest);
	profile__free(damaged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),	    cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_before),	    cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_groups),	    cmocka_unit_test(test_exits),
		cmocka_unit_test(test_not_known),   cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_many_epochs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
