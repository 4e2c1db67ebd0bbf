// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "gaps.h"
#include "profile.h"
#include "text.h"

static void test_each_has_a_key_of_its_own(void **state)
{
	for (int gap = 0; gap < GAPS; gap++)
		assert_int_equal(gap__by_key(gap__key(gap)), gap);
	assert_int_equal(gap__by_key("sample_bytes"), -ENOENT);
	assert_int_equal(gap__by_key(""), -ENOENT);
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

static struct profile_gap gap_of(enum gap kind, __u64 number)
{
	return (struct profile_gap){
		.kind = kind,
		.number = number,
		.size_bytes = 4096,
		.object = "/lib/object",
		.detail = kind == GAP_SENTENCE ? "engine_gaps" : "the detail\nlib*.so\nother",
	};
}

static void assert_says(const struct profile *profile, const struct profile_gap *gap)
{
	_cleanup_(free_ptr) char *sentence = gap_text__sentence(gap), *expected = NULL,
				 *text = NULL;
	const char *effect = gap_text__effect(gap->kind);

	assert_non_null(sentence);
	/* The sentence has not been cut off, and nothing in it is left to be filled in. */
	assert_true(strlen(sentence) < sizeof(struct plural_text) - 1);
	assert_null(strpbrk(sentence, "%{|}\n"));
	assert_true(asprintf(&expected, "%s; %s\n", sentence, effect) > 0);
	assert_int_equal(completeness__lines(profile, 0, &text), 0);
	assert_string_equal(text, expected);
}

static void test_a_recording_with_any_of_them_says_so(void **state)
{
	for (int kind = 0; kind < GAPS; kind++) {
		struct profile *profile = new_profile();
		struct profile_gap gap = gap_of(kind, 1);

		assert_int_equal(profile__add_gap(profile, &gap), 0);
		/* Outside of the regions all is counted. */
		assert_int_equal(completeness__is_complete(profile), gap__is_of_regions(kind));
		assert_says(profile, &gap);
		gap.number = 26;
		assert_int_equal(profile__add_gap(profile, &gap), 0);
		gap.number = 27;
		gap.size_bytes = 8192;
		assert_int_equal(profile->n_gaps, 1);
		assert_int_equal(profile__gap(profile, kind), 27);
		assert_says(profile, &gap);
		profile__free(profile);
	}
}

static void test_the_files_of_a_definition_are_listed(void **state)
{
	struct profile_gap gap = gap_of(GAP_DEFINITION_LACKING, 0);
	_cleanup_(free_ptr) char *two = gap_text__sentence(&gap), *three = NULL, *none = NULL;

	gap.detail = "f\na\nb\nc";
	three = gap_text__sentence(&gap);
	gap.detail = "f";
	none = gap_text__sentence(&gap);
	assert_non_null(two);
	assert_non_null(three);
	assert_non_null(none);
	assert_non_null(
		strstr(two, "target named lib*.so or other has a function of /lib/object, such as "
			    "the detail: "));
	assert_non_null(
		strstr(three, "target named a, b or c has a function of /lib/object, such as f: "));
	assert_non_null(strstr(none, "target has a function of /lib/object, such as f: "));
}

static void assert_old(const char *key, const char *value, const char *expected)
{
	struct profile *profile = new_profile();
	_cleanup_(free_ptr) char *text = NULL;

	assert_int_equal(profile__add_old_gap(profile, 0, key, value), 1);
	assert_false(completeness__is_complete(profile));
	assert_int_equal(completeness__lines(profile, 0, &text), 0);
	assert_string_equal(text, expected);
	profile__free(profile);
}

/* Recordings of before had numbers and sentences in meta. */
static void test_what_older_recordings_say_is_said(void **state)
{
	struct profile *profile = new_profile();

	assert_old(
		"mappings_lost", "1234",
		"1,234 mappings of files went unnoticed, and with them perhaps an allocator; this "
		"profile is not complete\n");
	assert_old("unprobed_allocators", "/lib/a was not probed: why\n/lib/b was lost",
		   "allocator /lib/a was not probed: why; this profile is not complete\n"
		   "allocator /lib/b was lost; this profile is not complete\n");
	assert_old(
		"unprobed_programs", "a: b: 2 processes, 12345 bytes\nothers: 1 process\nnonsense",
		"2 processes of the program a: b took 12,345 bytes from the kernel and called no function "
		"that is probed: its allocator is unknown; define it (allocprof-allocators(5)); this "
		"profile is not complete\n"
		"1 other process took memory from the kernel and called no function that is probed; this "
		"profile is not complete\n"
		"nonsense; this profile is not complete\n");
	assert_old(
		"refused_programs", "a, statically linked: 1 process",
		"the calls of a program are not seen: a, statically linked: 1 process; this profile is "
		"not complete\n");
	assert_old(
		"live_gaps", "/lib/a were not followed: why",
		"the blocks of allocator /lib/a were not followed: why; this profile is not complete\n");
	assert_old("lacking_sources", "pool",
		   "no file of the target had a function of pool; this profile is not complete\n");
	assert_old("engine_gaps", "a sentence", "a sentence; this profile is not complete\n");
	assert_int_equal(profile__add_old_gap(profile, 0, "allocators", "/lib/a"), 0);
	assert_int_equal(profile__add_old_gap(profile, 0, "allocator_hidden", "1"), 0);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_has_a_key_of_its_own),
		cmocka_unit_test(test_a_recording_with_any_of_them_says_so),
		cmocka_unit_test(test_the_files_of_a_definition_are_listed),
		cmocka_unit_test(test_what_older_recordings_say_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
