// SPDX-License-Identifier: GPL-3.0-or-later
/* Lists come in the order that comparing them one number after the other gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "list_sort.h"
#include "random.h"

#define N_LISTS 20000
#define LENGTH	40

struct lists {
	__u32 numbers[N_LISTS][LENGTH];
	size_t lengths[N_LISTS];
};

static __u32 number(const void *owner, __u32 list, size_t at)
{
	const struct lists *lists = owner;

	assert_true(at <= lists->lengths[list]);
	return at < lists->lengths[list] ? lists->numbers[list][at] : UINT32_MAX;
}

static int compare(const struct lists *lists, __u32 a, __u32 b)
{
	for (size_t at = 0; at < lists->lengths[a] && at < lists->lengths[b]; at++) {
		if (lists->numbers[a][at] != lists->numbers[b][at])
			return lists->numbers[a][at] < lists->numbers[b][at] ? -1 : 1;
	}
	if (lists->lengths[a] == lists->lengths[b])
		return 0;
	return lists->lengths[a] < lists->lengths[b] ? -1 : 1;
}

/* Sorts @n lists, and checks that each is there once and none comes before a lesser one. */
static void check_sorted(const struct lists *lists, size_t n)
{
	__u32 *order = calloc(n + 1, sizeof(*order));
	bool *seen = calloc(n + 1, sizeof(*seen));

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	assert_int_equal(list_sort(order, n, number, lists), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(order[i] < n && !seen[order[i]]);
		seen[order[i]] = true;
		if (i)
			assert_true(compare(lists, order[i - 1], order[i]) <= 0);
	}
	free(seen);
	free(order);
}

/* Lists of up to @longest numbers below @n_numbers, the first @n_same of them the same in all. */
static struct lists *make_lists(size_t longest, __u32 n_numbers, size_t n_same)
{
	struct lists *lists = calloc(1, sizeof(*lists));

	assert_non_null(lists);
	seed(1);
	for (size_t i = 0; i < N_LISTS; i++) {
		lists->lengths[i] = below(longest + 1);
		for (size_t at = n_same; at < lists->lengths[i]; at++)
			lists->numbers[i][at] = below(n_numbers);
	}
	return lists;
}

static void test_random_lists(void **state)
{
	static const struct {
		size_t longest;
		__u32 n_numbers;
		size_t n_same;
	} kinds[] = {
		{ LENGTH, 3, 0 },	   { LENGTH, 5000, 20 },
		{ LENGTH, UINT32_MAX, 0 }, { 5, 2, 0 }, /* most of them several times */
		{ LENGTH, 2, 39 },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct lists *lists =
			make_lists(kinds[i].longest, kinds[i].n_numbers, kinds[i].n_same);

		check_sorted(lists, N_LISTS);
		free(lists);
	}
}

/* Each begins the next one; already in order, and the other way round. */
static void test_beginnings(void **state)
{
	struct lists *lists = calloc(1, sizeof(*lists));

	assert_non_null(lists);
	for (size_t i = 0; i < LENGTH; i++) {
		lists->lengths[i] = i;
		lists->lengths[LENGTH + i] = LENGTH - 1 - i;
	}
	check_sorted(lists, 2 * LENGTH);
	free(lists);
}

static void test_few(void **state)
{
	struct lists *lists = make_lists(LENGTH, 3, 0);

	for (size_t n = 0; n < 30; n++)
		check_sorted(lists, n);
	free(lists);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_lists),
		cmocka_unit_test(test_beginnings),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
