// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "event_choice.h"

static struct event_choice *choose(const char *text)
{
	struct event_choice *choice = NULL;
	struct error error = { 0 };

	if (event_choice__new(text, &choice, &error))
		fail_msg("%s: %s", text, error.text);
	return choice;
}

static void test_answers(void **state)
{
	static const struct {
		const char *text, *thread;
		__u64 size;
		bool has;
	} cases[] = {
		{ "size > 100", "main", 100, false },
		{ "size > 100", "main", 101, true },
		{ "size BETWEEN 1 AND 2 OR size = 0", "main", 0, true },
		{ "thread = 'worker'", "worker", 1, true },
		{ "thread = 'worker'", "Worker", 1, false },
		{ "thread GLOB 'pool-*' AND size >= 4096", "pool-7", 4096, true },
		{ "thread GLOB 'pool-*' AND size >= 4096", "pool-7", 4095, false },
		{ "thread = 'it''s'", "it's", 1, true },
		{ "NULL", "main", 1, false },
		/* SQLite's numbers end there. */
		{ "size = 9223372036854775807", "main", UINT64_MAX, true },
		/* A comment does not hide the rest of the statement. */
		{ "size > 100 -- of course", "main", 100, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event_choice *choice = choose(cases[i].text);

		/* The second answer is of what was remembered. */
		for (int j = 0; j < 2; j++)
			if (event_choice__has(choice, cases[i].thread, cases[i].size) !=
			    cases[i].has)
				fail_msg("%s: a block of %llu of thread %s", cases[i].text,
					 cases[i].size, cases[i].thread);
		assert_null(event_choice__failure(choice));
		event_choice__free(choice);
	}
	event_choice__free(NULL);
}

/* Answers are of a size and a thread, not of either. */
static void test_many_answers(void **state)
{
	struct event_choice *choice = choose("size % 2 = 0 AND thread = 'even' OR thread = 'all'");
	static const char *const threads[] = { "even", "all", "none" };

	for (int round = 0; round < 2; round++)
		for (__u64 size = 0; size < 200; size++)
			for (int i = 0; i < 3; i++)
				assert_int_equal(event_choice__has(choice, threads[i], size),
						 i == 1 || (i == 0 && size % 2 == 0));
	event_choice__free(choice);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "size >", "--where" },
		{ "colour = 1", "no such column: colour" },
		{ "alive", "asks for size and thread only" },
		{ "through('main')", "asks for size and thread only" },
		{ "1) UNION SELECT (2", "--where" },
		{ "(SELECT count(*) FROM block)", "--where" },
		{ "", "--where" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event_choice *choice = (void *)&cases;
		struct error error = { 0 };

		assert_int_equal(event_choice__new(cases[i].text, &choice, &error), -EINVAL);
		if (!strstr(error.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, error.text);
		/* It is set only on success. */
		assert_ptr_equal(choice, (void *)&cases);
	}
}

/* Where it cannot be evaluated nothing is left out, and the reason is kept. */
static void test_failures(void **state)
{
	struct event_choice *choice = choose("abs(-9223372036854775807 - size)");

	assert_true(event_choice__has(choice, "main", 1));
	assert_non_null(event_choice__failure(choice));
	assert_non_null(strstr(event_choice__failure(choice), "integer overflow"));
	assert_true(event_choice__has(choice, "main", 0));
	event_choice__free(choice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_many_answers),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
