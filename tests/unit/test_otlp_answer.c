// SPDX-License-Identifier: GPL-3.0-or-later
/* What a collector answers is read as far as it makes sense, and never beyond its end. */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "otlp_answer.h"

/* Reads a copy that ends where the sanitizers notice. */
static struct otlp_answer read_answer(const char *bytes, size_t size, bool is_status)
{
	unsigned char *copy = malloc(size ? size : 1);
	struct otlp_answer answer;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	if (is_status)
		otlp_answer__read_status(copy, size, &answer);
	else
		otlp_answer__read(copy, size, &answer);
	free(copy);
	return answer;
}

/* partial_success { rejected_profiles: 300 error_message: "no\n" }, and fields of later versions before and in it. */
static const char partial[] =
	"\x51xxxxxxxx\x5dxxxx\x60\x01\x0a\x0c\x08\xac\x02\x12\x03no\n\x1a\x02zz";
/* code: 3, message: "bad" */
static const char status[] = "\x08\x03\x12\x03"
			     "bad";

static void test_reads(void **state)
{
	struct otlp_answer answer = read_answer(partial, sizeof(partial) - 1, false);

	assert_int_equal(answer.rejected, 300);
	assert_string_equal(answer.text, "no?");
	answer = read_answer(status, sizeof(status) - 1, true);
	assert_string_equal(answer.text, "bad");
	answer = read_answer("", 0, false);
	assert_int_equal(answer.rejected, 0);
	assert_string_equal(answer.text, "");
}

/* Cut off anywhere, with lengths that are beyond the end, and with numbers that never end. */
static void test_nonsense(void **state)
{
	static const char endless[] = "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
	static const char beyond[] = "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\x01";
	static const char group[] = "\x0b\x08\x01";

	for (size_t i = 0; i < sizeof(partial) - 1; i++) {
		struct otlp_answer answer = read_answer(partial, i, false);

		assert_true(!answer.rejected || answer.rejected == 300);
	}
	assert_int_equal(read_answer(endless, sizeof(endless) - 1, false).rejected, 0);
	assert_int_equal(read_answer(beyond, sizeof(beyond) - 1, false).rejected, 0);
	assert_string_equal(read_answer(group, sizeof(group) - 1, true).text, "");
}

static void test_long_text(void **state)
{
	char bytes[600] = "\x12\xd4\x04"; /* 596 bytes */
	struct otlp_answer answer;

	memset(bytes + 3, 'x', sizeof(bytes) - 3);
	answer = read_answer(bytes, sizeof(bytes), true);
	assert_int_equal(strlen(answer.text), sizeof(answer.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_long_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
