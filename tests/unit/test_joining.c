// SPDX-License-Identifier: GPL-3.0-or-later
/* Which names of programs match a pattern of --name in the kernel: the same that fnmatch(3) has in /proc. */
#include "unit.h"

#include <fnmatch.h>
#include <string.h>

#include "twin.h"

static void assert_joins(const char *pattern, const char *name)
{
	if (twin__joins(pattern, name) != !fnmatch(pattern, name, 0))
		fail_msg("'%s' and '%s': %d, but fnmatch(3) has %d", pattern, name,
			 twin__joins(pattern, name), !fnmatch(pattern, name, 0));
}

static void test_longest(void **state)
{
	assert_joins("abcdefghijklmno", "abcdefghijklmno");
	assert_joins("abcdefghijklmn?", "abcdefghijklmno");
	assert_joins("abcdefghijklmn*", "abcdefghijklmno");
	assert_joins("***************", "abcdefghijklmno");
	assert_joins("*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaa");
	assert_joins("*a*a*a*a*a*a*a", "aaaaaaaaaaaaaaa");
	assert_joins("abcdefghijklmno", "abcdefghijklmn");
	assert_joins("abcdefghijklmn", "abcdefghijklmno");
}

/* All patterns of up to five of four characters, against all names of up to five of two. */
static void test_all_short_ones(void **state)
{
	char pattern[6] = "", name[6] = "";

	for (unsigned int i = 1; i < 4 * 4 * 4 * 4 * 4 * 2; i++) {
		unsigned int n = 0;

		for (unsigned int rest = i; rest > 1 && n < 5; rest /= 4)
			pattern[n++] = "ab*?"[rest % 4];
		pattern[n] = '\0';
		if (!n)
			continue;
		for (unsigned int j = 2; j < 64; j++) {
			n = 0;
			for (unsigned int rest = j; rest > 1; rest /= 2)
				name[n++] = "ab"[rest % 2];
			name[n] = '\0';
			assert_joins(pattern, name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_all_short_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
