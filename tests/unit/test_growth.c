// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	static const bool is_growing[KINDS] = {
		[LEAK] = true,
		[RARE_LEAK] = true,
		[LEAKY_SAWTOOTH] = true,
		[NEVER_FREED_UNTIL_NOW] = true,
	};
	struct profile *profile = make_profile(EPOCHS, SECONDS);
	struct growth growths[KINDS];
	struct error error;

	assert_int_equal(growth__measure(profile, groups, KINDS, growths, &error), 0);
	for (int kind = 0; kind < KINDS; kind++) {
		assert_true(growths[kind].is_known);
		if (growths[kind].is_growing != is_growing[kind])
			fail_msg("kind %d: growing is %d, by %f bytes/s", kind,
				 growths[kind].is_growing, growths[kind].bytes_per_second);
	}
	/* A block of 100 bytes every half of a second. */
	assert_float_equal(growths[LEAK].bytes_per_second, 200, 0.001);
	assert_float_equal(growths[STARTUP].bytes_per_second, 0, 0.001);
	assert_float_equal(growths[SHRINKING].bytes_per_second, -200, 0.001);
	assert_float_equal(growths[RARE_LEAK].bytes_per_second, 5, 0.5);
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
	assert_int_equal(growth__measure(profile, groups, KINDS, growths, &error), 0);
	assert_true(growths[LEAK].is_known && !growths[LEAK].is_growing);
	assert_true(growths[RARE_LEAK].is_growing);
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

	assert_int_equal(growth__measure(profile, together, 2, growths, &error), 0);
	/* Two kinds in one group: one gains what the other loses. */
	assert_float_equal(growths[0].bytes_per_second, 0, 0.001);
	assert_false(growths[0].is_growing);
	assert_false(growths[1].is_growing);
	profile__free(profile);
}

static void test_not_known(void **state)
{
	struct profile *short_one = make_profile(10, "5.000000");
	struct profile *damaged = make_profile(EPOCHS, "8999999999");
	struct growth growths[KINDS];
	struct error error;

	assert_int_equal(growth__measure(short_one, groups, KINDS, growths, &error), 0);
	assert_false(growths[LEAK].is_known || growths[LEAK].is_growing);
	assert_int_equal(growth__measure(damaged, groups, KINDS, growths, &error), 0);
	assert_false(growths[LEAK].is_known);
	profile__free(damaged);
	assert_int_equal(profile__set_meta(short_one, "epoch_ns", "none"), 0);
	assert_int_equal(growth__measure(short_one, groups, KINDS, growths, &error), -EINVAL);
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
	assert_int_equal(growth__measure(profile, groups, KINDS, growths, &error), 0);
	assert_true(growths[RARE_LEAK].is_growing);
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

	assert_int_equal(growth__measure(quiet, groups, KINDS, growths, &error), 0);
	assert_true(growths[LEAK].is_known && !growths[LEAK].is_growing);
	assert_float_equal(growths[LEAK].bytes_per_second, 0, 0.001);
	assert_int_equal(growth__measure(longest, groups, KINDS, growths, &error), 0);
	assert_true(growths[LEAK].is_known && growths[LEAK].is_growing);
	/* It has no lifetimes. */
	assert_true(growths[STARTUP].is_known && !growths[STARTUP].is_growing);
	assert_int_equal(growth__measure(damaged, groups, KINDS, growths, &error), 0);
	assert_false(growths[LEAK].is_known || growths[STARTUP].is_known);
	profile__free(quiet);
	profile__free(longest);
	profile__free(damaged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),  cmocka_unit_test(test_groups),
		cmocka_unit_test(test_exits),  cmocka_unit_test(test_not_known),
		cmocka_unit_test(test_no_end), cmocka_unit_test(test_many_epochs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
