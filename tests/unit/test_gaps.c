// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "gaps.h"
#include "plural.h"
#include "profile.h"

static void test_each_has_a_key_of_its_own_and_a_sentence(void **state)
{
	for (int gap = 0; gap < GAPS; gap++) {
		const struct gap_text *text = gap__text(gap);

		assert_non_null(text->key);
		assert_true(gap__is_key(text->key));
		assert_int_equal(text->sentence[0], ' ');
		assert_true(strlen(text->sentence) < sizeof(struct plural_text));
		for (int other = 0; other < gap; other++)
			assert_string_not_equal(text->key, gap__text(other)->key);
	}
	assert_false(gap__is_key("sample_bytes"));
	assert_false(gap__is_key(""));
}

/* Makes a profile of no calls, whose ledger adds up. */
static struct profile *new_profile(void)
{
	static const char *const sums[] = { "events", "lost", "attributed", "complete",
					    "incomplete" };
	struct profile *profile = profile__new();

	assert_non_null(profile);
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		assert_int_equal(profile__set_ledger(profile, sums[i], 0), 0);
	assert_true(completeness__is_complete(profile));
	return profile;
}

static void assert_says(const struct profile *profile, const char *number,
			const struct gap_text *gap)
{
	const struct plural_text sentence = plural__of(gap->sentence, strtoul(number, NULL, 10));
	const char *effect = gap->effect ? gap->effect : "this profile is not complete";
	_cleanup_(free_ptr) char *expected = NULL, *text = NULL;

	assert_true(asprintf(&expected, "%s%s; %s\n", number, sentence.text, effect) > 0);
	assert_int_equal(completeness__lines(profile, 0, &text), 0);
	assert_string_equal(text, expected);
}

static void test_a_recording_with_any_of_them_is_not_complete(void **state)
{
	for (int gap = 0; gap < GAPS; gap++) {
		static const char *const numbers[] = { "1", "27" };
		const struct gap_text *text = gap__text(gap);
		struct profile *profile = new_profile();

		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
			assert_int_equal(profile__set_meta(profile, text->key, numbers[i]), 0);
			assert_false(completeness__is_complete(profile));
			assert_says(profile, numbers[i], text);
		}
		profile__free(profile);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_has_a_key_of_its_own_and_a_sentence),
		cmocka_unit_test(test_a_recording_with_any_of_them_is_not_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
