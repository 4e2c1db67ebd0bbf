// SPDX-License-Identifier: GPL-3.0-or-later
/* How a recorder is started, and what its owner learns of one that cannot record. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "command.h"
#include "error.h"
#include "measure_options.h"
#include "options.h"
#include "recorder.h"

/* Waits for what is next to tell. */
static enum recorder_news next_news(struct recorder *recorder, struct error *error)
{
	enum recorder_news news = RECORDER_QUIET;

	while (news == RECORDER_QUIET) {
		struct pollfd ready = { .fd = recorder__fd(recorder), .events = POLLIN };

		assert_int_equal(poll(&ready, 1, 60000), 1);
		news = recorder__attend(recorder, error);
	}
	return news;
}

/* Options are passed as record spells them, and others not at all. */
static void test_words(void **state)
{
	struct recorder_words words = { 0 };

	assert_int_equal(recorder_words__add(&words, 'p', "7,8"), 0);
	assert_int_equal(recorder_words__add(&words, OPT_LIVE, NULL), 0);
	assert_int_equal(recorder_words__add(&words, 0x7fff, "1"), OPTIONS_UNKNOWN);
	assert_int_equal(words.n, 2);
	assert_string_equal(words.words[0], "--pid=7,8");
	assert_string_equal(words.words[1], "--live");
	recorder_words__release(&words);
}

/* The child says what is wrong with an option, and the request to it is no error. */
static void test_refused_option(void **state)
{
	struct recorder_words words = { 0 };
	struct recorder *recorder = NULL;
	struct profile *profile = NULL;
	struct error error = { 0 };
	char line[256];

	assert_int_equal(recorder_words__add(&words, 'p', "nonsense"), 0);
	assert_int_equal(recorder__start(&words, &recorder, &error), 0);
	recorder__ask(recorder);
	assert_int_equal(next_news(recorder, &error), RECORDER_ENDED);
	assert_non_null(strstr(error.text, "'nonsense'"));
	assert_int_equal(recorder__status(recorder), EXIT_USAGE);
	assert_int_equal(recorder__pid(recorder), 0);
	assert_true(recorder__next_message(recorder, line, sizeof(line)));
	assert_string_equal(line, error.text);
	assert_false(recorder__next_message(recorder, line, sizeof(line)));
	/* There is neither a recording nor anybody to ask. */
	recorder__stop(recorder);
	assert_int_not_equal(recorder__ask(recorder), 0);
	assert_int_not_equal(recorder__read(recorder, &profile, &error), 0);
	assert_null(profile);
	recorder__free(recorder);
	recorder_words__release(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_refused_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
