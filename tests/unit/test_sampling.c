// SPDX-License-Identifier: GPL-3.0-or-later
/* Sampling by bytes as the programs do it (bpf/sample.bpf.h), with the settings that they are given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile.h"
#include "sample_abi.h"
#include "sampling.h"
#include "twin.h"

#define TWO_TO_64 ((unsigned __int128)1 << 64)

static const __u64 intervals[] = { 1,
				   2,
				   3,
				   10,
				   100,
				   4095,
				   4096,
				   4097,
				   524288,
				   1000003,
				   1 << 24,
				   1ULL << 29,
				   123456789,
				   (1 << 30) - 1,
				   AP_MAX_SAMPLE_BYTES };

#define N_INTERVALS (sizeof(intervals) / sizeof(intervals[0]))

static struct ap_config sample_every(__u64 bytes)
{
	struct ap_config config = { 0 };

	ap_sample__configure(bytes, &config);
	twin__set_sampling(&config);
	return config;
}

/* Sizes that lie close, then ever further apart. */
static __u64 next_size(__u64 size)
{
	return size < 64 ? size + 1 : size + size / 16 + 1;
}

/* One byte of @bytes is chosen, each by itself. */
static double exact_chance(__u64 bytes, __u64 size)
{
	return bytes == 1 ? 1 : -expm1((size ? size : 1) * log1p(-1.0 / bytes));
}

static void test_chance_is_that_of_a_byte_being_chosen(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_INTERVALS; i++) {
		sample_every(intervals[i]);
		for (__u64 size = 0; size < (1ULL << 62); size = next_size(size)) {
			double chance = ldexp((double)twin__chance(size), -64);
			double exact = exact_chance(intervals[i], size);

			if (fabs(chance - exact) > 1e-4 * exact)
				fail_msg("one byte of %llu, %llu bytes: %.9g instead of %.9g",
					 intervals[i], size, chance, exact);
		}
	}
}

/* A draw for which ap_sample__is_beyond() returns 1 must not sample the call. */
static void test_beyond_is_only_what_is_not_sampled(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_INTERVALS; i++) {
		struct ap_config config = sample_every(intervals[i]);

		for (__u64 size = 0; size < config.sample_certain_bytes; size = next_size(size)) {
			__u64 chance = ap_sample__chance(&config, size);

			if (!chance)
				continue;
			/* Each smaller draw is less beyond. */
			if (ap_sample__is_beyond(&config, size, chance - 1))
				fail_msg(
					"one byte of %llu, %llu bytes: a draw that is sampled is beyond",
					intervals[i], size);
			/* Most of the others are found so. */
			if (chance < 1ULL << 54)
				assert_true(ap_sample__is_beyond(&config, size, chance * 2));
		}
	}
}

static void test_extreme_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_INTERVALS; i++) {
		struct ap_config config = sample_every(intervals[i]);

		assert_true(twin__chance(0) == twin__chance(1));
		assert_true(twin__chance(config.sample_certain_bytes) == TWO_TO_64);
		assert_true(twin__chance(UINT64_MAX) == TWO_TO_64);
		assert_true(twin__chance(1ULL << 63) == TWO_TO_64);
		assert_int_equal(twin__draw(UINT64_MAX), 1);
		if (intervals[i] > 1)
			assert_true(twin__chance(config.sample_certain_bytes - 1) < TWO_TO_64);
		/* At the edges between the ways of computing it: small sizes, and halves. */
		assert_true(twin__chance(intervals[i] >> 16) <=
			    twin__chance((intervals[i] >> 16) + 1));
		assert_true(twin__chance(1) > 0);
	}
	sample_every(1);
	for (__u64 size = 0; size < (1ULL << 62); size = next_size(size))
		assert_int_equal(twin__draw(size), 1);
}

/* Over all draws, a call counts as exactly one. */
static void check_mean(__u64 chance)
{
	__u32 low = twin__weight(chance, chance - 1), high = twin__weight(chance, 0);
	__u64 least = 0, most = chance - 1;
	unsigned __int128 sum;

	assert_true(high == low || high == low + 1);
	/* The first draw that is rounded down. */
	while (high != low && least < most) {
		__u64 middle = least + (most - least) / 2;

		if (twin__weight(chance, middle) == low)
			most = middle;
		else
			least = middle + 1;
	}
	sum = (unsigned __int128)chance * low + (high == low ? 0 : least);
	if (sum != TWO_TO_64)
		fail_msg("a chance of %llu / 2^64 counts too much or too little", chance);
}

static void test_a_call_counts_as_one_in_the_mean(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_INTERVALS; i++) {
		struct ap_config config = sample_every(intervals[i]);

		for (__u64 size = 1; size < config.sample_certain_bytes; size = next_size(size))
			check_mean(twin__chance(size));
	}
	for (__u64 chance = 1ULL << 33; chance < UINT64_MAX / 3 * 2; chance += chance / 7)
		check_mean(chance);
	check_mean(UINT64_MAX);
	check_mean(1ULL << 63);
	check_mean((1ULL << 63) + 1);
}

/*
 * The numbers are the same in every run. Of @n calls the sum of what they count as has the variance
 * n * (mean square - 1), which the estimate of the variance has as its mean.
 */
static void draw_many(__u64 bytes, __u64 size, __u32 n)
{
	struct ap_config config = sample_every(bytes);
	double chance = ldexp((double)twin__chance(size), -64), weight = 1 / chance;
	double low = floor(weight), fraction = weight - low;
	double square = chance * ((1 - fraction) * low * low + fraction * (low + 1) * (low + 1));
	double deviation = sqrt(n * (square - 1));
	struct ap_estimate sums = { 0 };
	struct profile_estimate estimate;
	__u64 sum = 0;

	for (__u32 i = 0; i < n; i++) {
		__u32 drawn = twin__draw(size);

		sum += drawn;
		if (drawn)
			twin__estimate_add(&sums, drawn, size);
	}
	estimate = sampling__estimate(&sums, config.sample_unit_shift);
	assert_true(fabs(sum - (double)n) <= 5 * deviation);
	assert_true(fabs(sums.samples - n * chance) <= 5 * sqrt(n * chance));
	assert_true(fabs(sqrt(estimate.variance) - deviation) <=
		    (0.02 + 4 / sqrt(n * chance)) * deviation);
	if (size)
		assert_true(fabs(sqrt(estimate.bytes_variance) - deviation * size) <=
			    (0.02 + 4 / sqrt(n * chance)) * deviation * size);
}

static void test_sums_and_their_variance(void **state)
{
	(void)state;
	draw_many(100, 0, 1000000);
	draw_many(100, 1, 1000000);
	draw_many(100, 37, 1000000);
	draw_many(100, 100, 1000000);
	draw_many(100, 250, 1000000);
	draw_many(4096, 16, 2000000);
	draw_many(524288, 512, 2000000);
	draw_many(524288, 65536, 200000);
	draw_many(524288, 524288, 200000);
	draw_many(524288, 2000000, 200000);
	draw_many(524288, 1ULL << 40, 1000);
	draw_many(AP_MAX_SAMPLE_BYTES, 1 << 20, 1000000);
	draw_many(AP_MAX_SAMPLE_BYTES, 1ULL << 31, 100000);
}

static void test_one_counts_the_same_in_and_out_of_the_programs(void **state)
{
	static const struct {
		__u32 weight;
		__u64 size;
	} calls[] = { { 1, 0 },	     { 1, UINT64_MAX },	    { 2, 37 },
		      { 3, 400000 }, { 2, 20 * 524288ULL }, { 524288, 1 } };
	struct ap_config config = sample_every(524288);

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct ap_count one = sampling__count_one(calls[i].weight, calls[i].size,
							  config.sample_unit_shift);
		struct ap_estimate sums = { 0 };

		twin__estimate_add(&sums, calls[i].weight, calls[i].size);
		assert_memory_equal(&one.estimate, &sums, sizeof(sums));
		assert_int_equal(one.calls, calls[i].weight);
	}
}

static void test_variance_stops_at_the_top(void **state)
{
	struct ap_estimate sums = { 0 };

	(void)state;
	sample_every(AP_MAX_SAMPLE_BYTES);
	for (int i = 0; i < 100; i++)
		twin__estimate_add(&sums, 1 << 30, 1);
	assert_int_equal(sums.samples, 100);
	assert_true(sums.variance == AP_MAX_SUM);
}

/* Over draws that are spread evenly the mean of a told weight is the quotient. */
static void test_told_weight_is_the_quotient_in_the_mean(void **state)
{
	static const struct {
		__u64 bytes, size;
	} calls[] = { { 0, 0 },
		      { 7, 0 },
		      { 2048, 2000 },
		      { 1, 3 },
		      { 1000003, 7 },
		      { 900, 1000 },
		      { 3, 1ULL << 62 },
		      { 1ULL << 36, 3ULL << 33 },
		      { 5ULL << 32, 3ULL << 32 } };
	const __u32 step = 1 << 16;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		double quotient = (double)calls[i].bytes / (calls[i].size ? calls[i].size : 1);
		double sum = 0;

		for (__u64 draw = 0; draw < 1ULL << 32; draw += step) {
			__u32 weight = ap_sample__told(calls[i].bytes, calls[i].size, draw);

			assert_true(fabs(weight - quotient) < 1);
			sum += weight;
		}
		/* One draw more or less, and what is cut off of large sizes. */
		assert_true(fabs(sum / step - quotient) <= 2.0 / step);
	}
	assert_int_equal(ap_sample__told(~0ULL, 1, 0), 0xffffffff);
	assert_int_equal(ap_sample__told(~0ULL, 1ULL << 30, 0), AP_SAMPLE_MAX_TOLD >> 30);
}

/* The largest that a probe may tell does not overflow; a variance is short by what is cut off. */
static void test_told_bytes_fit(void **state)
{
	struct ap_estimate sums = { 0 };
	struct ap_config config = { 0 };
	double exact =
		(double)(AP_SAMPLE_MAX_TOLD - (AP_SAMPLE_MAX_TOLD >> 6)) * AP_SAMPLE_MAX_TOLD;

	(void)state;
	ap_sample__configure(1, &config);
	ap_sample__admit_told(&config);
	twin__set_sampling(&config);
	twin__estimate_add(&sums, 64, AP_SAMPLE_MAX_TOLD >> 6);
	assert_true(fabs(sampling__estimate(&sums, config.sample_unit_shift).bytes_variance -
			 exact) <= 1e-6 * exact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chance_is_that_of_a_byte_being_chosen),
		cmocka_unit_test(test_beyond_is_only_what_is_not_sampled),
		cmocka_unit_test(test_extreme_sizes),
		cmocka_unit_test(test_a_call_counts_as_one_in_the_mean),
		cmocka_unit_test(test_sums_and_their_variance),
		cmocka_unit_test(test_one_counts_the_same_in_and_out_of_the_programs),
		cmocka_unit_test(test_variance_stops_at_the_top),
		cmocka_unit_test(test_told_weight_is_the_quotient_in_the_mean),
		cmocka_unit_test(test_told_bytes_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
