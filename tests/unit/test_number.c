// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>

#include "error.h"
#include "number.h"
#include "options.h"

static void test_prints(void **state)
{
	assert_string_equal(number__count(0).text, "0");
	assert_string_equal(number__count(999).text, "999");
	assert_string_equal(number__count(1234567).text, "1,234,567");
	assert_string_equal(number__count(UINT64_MAX).text, "18,446,744,073,709,551,615");
	assert_string_equal(number__bytes(1234567, true).text, "1,234,567");
	assert_string_equal(number__bytes(0, false).text, "0 B");
	assert_string_equal(number__bytes(999, false).text, "999 B");
	assert_string_equal(number__bytes(1023, false).text, "1,023 B");
	assert_string_equal(number__bytes(1024, false).text, "1.00 KiB");
	assert_string_equal(number__bytes(1023 << 10, false).text, "1023 KiB");
	assert_string_equal(number__bytes((1 << 20) - 1, false).text, "1.00 MiB");
	assert_string_equal(number__bytes(12345678, false).text, "11.8 MiB");
	assert_string_equal(number__bytes(UINT64_MAX, false).text, "16.0 EiB");
	assert_string_equal(number__share(1, 0).text, "-");
	assert_string_equal(number__share(0, 5).text, "0.0 %");
	assert_string_equal(number__share(1, 1000000).text, "<0.1 %");
	assert_string_equal(number__share(999999, 1000000).text, "99.9 %");
	assert_string_equal(number__share(5, 5).text, "100.0 %");
	assert_string_equal(number__time(0).text, "0 ns");
	assert_string_equal(number__time(999999).text, "1.00 ms");
	assert_string_equal(number__time(12000000000).text, "12.0 s");
	assert_string_equal(number__time(7200000000000).text, "2.00 h");
}

static void test_numbers_of_doubles(void **state)
{
	assert_int_equal(number__of(0), 0);
	assert_int_equal(number__of(1023.9), 1023);
	assert_int_equal(number__of(0x1p53), 1LL << 53);
	assert_int_equal(number__of((double)INT64_MAX), INT64_MAX);
	assert_int_equal(number__of(1e300), INT64_MAX);
}

static void test_parses(void **state)
{
	struct error error;
	double share;
	__u64 value;

	assert_int_equal(number__parse_duration("1.5", &value, &error), 0);
	assert_int_equal(value, 1500000000);
	assert_int_equal(number__parse_duration("20us", &value, &error), 0);
	assert_int_equal(value, 20000);
	assert_int_equal(number__parse_size("4K", &value, &error), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(number__parse_size("4kB", &value, &error), 0);
	assert_int_equal(value, 4000);
	assert_int_equal(number__parse_share("2%", &share, &error), 0);
	assert_true(share > 0.0199 && share < 0.0201);
	assert_int_equal(number__parse_count("0", &value, &error), 0);
	assert_int_equal(value, 0);
	for (const char *const *bad = (const char *const[]){ "", "-1", "0", "nan", "inf", "1x",
							     "1e99", " 1", "0s", NULL };
	     *bad; bad++)
		assert_int_equal(number__parse_duration(*bad, &value, &error), -EINVAL);
	assert_int_equal(number__parse_size("-4", &value, &error), -EINVAL);
	assert_int_equal(number__parse_size("4 K", &value, &error), -EINVAL);
	assert_int_equal(number__parse_share("2", &share, &error), -EINVAL);
	assert_int_equal(number__parse_share("101%", &share, &error), -EINVAL);
	assert_int_equal(number__parse_count("99999999999999999999", &value, &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prints),
		cmocka_unit_test(test_numbers_of_doubles),
		cmocka_unit_test(test_parses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
