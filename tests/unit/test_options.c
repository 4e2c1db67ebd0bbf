// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "error.h"
#include "options.h"

static const struct argp_option table[] = {
	{ "json", 'j', NULL, 0, "" },
	{ "input", 'i', "FILE", 0, "" },
	{ "in-file", 0, NULL, OPTION_ALIAS, "" },
	{ "cost", 256, "KEY", 0, "" },
	{ "counts", 258, NULL, 0, "" },
	{ 0 },
};

static const struct command plain = { .name = "plain", .options = table };
static const struct command launcher = { .name = "launcher", .options = table, .launches = true };

static int check(const struct command *command, const char *words, struct error *error)
{
	char copy[256], *argv[16] = { (char *)"x" }, *save = NULL;
	int argc = 1;

	strcpy(copy, words);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	error->text[0] = '\0';
	return options__check(command, argv, error);
}

static void test_sentences(void **state)
{
	static const struct {
		const char *words, *sentence;
	} cases[] = {
		{ "--jsno", "unknown option '--jsno'; did you mean '--json'?" },
		{ "--inptu=x", "unknown option '--inptu'; did you mean '--input'?" },
		{ "--qqqqq", "unknown option '--qqqqq'; `allocprof plain --help` lists all" },
		{ "--hepl", "unknown option '--hepl'; did you mean '--help'?" },
		{ "-q", "unknown option '-q'; `allocprof plain --help` lists all" },
		{ "-jq", "unknown option '-q'; `allocprof plain --help` lists all" },
		{ "-\x01", "unknown option '-?'; `allocprof plain --help` lists all" },
		{ "--json=1", "option '--json' takes no value; leave '=1' out" },
		{ "--cost", "option '--cost' needs a value; write --cost=KEY" },
		{ "-i", "option '-i' needs a value; write -i FILE" },
		{ "--co",
		  "option '--co' is ambiguous; write it out, `allocprof plain --help` lists all" },
		{ "word --jsno", "unknown option '--jsno'; did you mean '--json'?" },
	};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (check(&plain, cases[i].words, &error) != -EINVAL)
			fail_msg("accepted: %s", cases[i].words);
		assert_string_equal(error.text, cases[i].sentence);
	}
}

static void test_accepted(void **state)
{
	static const char *const plain_words[] = {
		"",	    "--json",	 "--js",	  "-j",	      "-ifile", "-i file",
		"-ji file", "-i --jsno", "--cost --jsno", "--cost=x", "--in x", "-- --jsno",
		"- -j",	    "--input=",	 "word -j",
	};
	static const char *const launcher_words[] = { "ls --jsno", "-i x ls -q", "-- --jsno",
						      "- --jsno" };
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(plain_words); i++) {
		if (check(&plain, plain_words[i], &error))
			fail_msg("%s: %s", plain_words[i], error.text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(launcher_words); i++) {
		if (check(&launcher, launcher_words[i], &error))
			fail_msg("%s: %s", launcher_words[i], error.text);
	}
	assert_int_equal(check(&launcher, "--jsno ls", &error), -EINVAL);
}

static void test_help(void **state)
{
	struct error error;

	assert_int_equal(check(&plain, "-i x --help", &error), 1);
	assert_int_equal(check(&plain, "--hel", &error), 1);
	assert_int_equal(check(&plain, "-jh", &error), 1);
	assert_int_equal(check(&launcher, "ls --help", &error), 0);
	assert_int_equal(check(&plain, "--jsno --help", &error), -EINVAL);
}

struct parsed {
	int json, n_words;
	const char *input, *words[4];
};

static int parse(int key, char *arg, struct options_input *input)
{
	struct parsed *parsed = input->options;

	switch (key) {
	case 'j':
		parsed->json++;
		return 0;
	case 'i':
		parsed->input = arg;
		return 0;
	case OPTIONS_OPERAND:
		for (char **word = input->operands; *word && parsed->n_words < 4; word++)
			parsed->words[parsed->n_words++] = *word;
		return 0;
	default:
		return OPTIONS_UNKNOWN;
	}
}

static void test_launched_command_keeps_its_options(void **state)
{
	static const char *const lines[][6] = {
		{ "launcher", "-j", "-ix", "ls", "-j", "--jsno" },
		{ "launcher", "-j", "--in-file=x", "ls", "-j", "--jsno" },
		{ "launcher", "-jix", "--", "ls", "-j", "--jsno" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct parsed parsed = { 0 };
		struct error error = { 0 };
		char *argv[7] = { NULL };

		for (int j = 0; j < 6; j++)
			argv[j] = (char *)lines[i][j];
		if (options__parse(&launcher, parse, &parsed, argv, &error))
			fail_msg("%s", error.text);
		assert_int_equal(parsed.json, 1);
		assert_string_equal(parsed.input, "x");
		assert_int_equal(parsed.n_words, 3);
		assert_string_equal(parsed.words[0], "ls");
		assert_string_equal(parsed.words[2], "--jsno");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_launched_command_keeps_its_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
