// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <string.h>

#include "text.h"

static void test_parts(void **state)
{
	static const struct {
		const char *sentence, *one, *more;
	} cases[] = {
		{ "", "", "" },
		{ "lost", "lost", "lost" },
		{ "call{|s} {was|were} lost", "call was lost", "calls were lost" },
		{ "{s|}", "s", "" },
		{ "librar{y was|ies were}", "library was", "libraries were" },
		{ "{one|two}{three|four}", "onethree", "twofour" },
		/* Not two parts. */
		{ "{a}|b", "{a}|b", "{a}|b" },
		{ "a {b|c", "a {b|c", "a {b|c" },
		{ "{", "{", "{" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_string_equal(plural__of(cases[i].sentence, 1).text, cases[i].one);
		assert_string_equal(plural__of(cases[i].sentence, 0).text, cases[i].more);
		assert_string_equal(plural__of(cases[i].sentence, 1000).text, cases[i].more);
	}
}

static void test_too_long(void **state)
{
	char sentence[1000];
	size_t most = sizeof(struct plural_text) - 1;

	memset(sentence, 'x', sizeof(sentence));
	memcpy(sentence, "{|", 2);
	sentence[sizeof(sentence) - 2] = '}';
	sentence[sizeof(sentence) - 1] = '\0';
	assert_int_equal(strlen(plural__of(sentence, 0).text), most);
	assert_string_equal(plural__of(sentence, 1).text, "");
	assert_int_equal(strlen(plural__of(sentence + 2, 1).text), most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
