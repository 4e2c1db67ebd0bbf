// SPDX-License-Identifier: GPL-3.0-or-later
/* A hash table finds what was inserted, also while it moves to a larger array, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hash_table.h"

/* Enough for the table to grow from 64 slots to 262,144. */
#define N_KEYS 100000

static bool is_key(const void *owner, __u32 id, const void *key)
{
	return id == *(const __u32 *)key;
}

static __u64 hash_of(__u32 key)
{
	return hash_mix(1, key);
}

static __u32 find(const struct hash_table *table, __u32 key)
{
	return hash_table__find(table, hash_of(key), is_key, NULL, &key);
}

static void test_found_while_it_grows(void **state)
{
	struct hash_table table = { 0 };
	size_t n_moving = 0;

	for (__u32 key = 1; key <= N_KEYS; key++) {
		assert_int_equal(find(&table, key), 0);
		assert_int_equal(hash_table__insert(&table, hash_of(key), key), 0);
		/* The last, the first, and one in between. */
		assert_int_equal(find(&table, key), key);
		assert_int_equal(find(&table, 1), 1);
		assert_int_equal(find(&table, key / 2 + 1), key / 2 + 1);
		n_moving += table.old_slots != NULL;
	}
	assert_true(n_moving > 0);
	assert_int_equal(table.n_used, N_KEYS);
	for (__u32 key = 1; key <= N_KEYS; key++)
		assert_int_equal(find(&table, key), key);
	hash_table__release(&table);
}

/* Entries of one hash are told apart by what the caller compares. */
static void test_one_hash(void **state)
{
	struct hash_table table = { 0 };

	for (__u32 key = 1; key <= 200; key++)
		assert_int_equal(hash_table__insert(&table, 7, key), 0);
	for (__u32 key = 1; key <= 200; key++)
		assert_int_equal(hash_table__find(&table, 7, is_key, NULL, &key), key);
	hash_table__release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_while_it_grows),
		cmocka_unit_test(test_one_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
