// SPDX-License-Identifier: GPL-3.0-or-later
/* Divides resident pages among blocks; each case says where both are. */
#include "unit.h"

#include "array.h"
#include "profile.h"
#include "resident.h"
#include "resident_memory.h"

#define PAGE  PROFILE_PAGE_BYTES
#define BEGIN 0x100000ULL

struct state {
	struct profile *profile;
	__u32 process;
	__u32 counts[3]; /* of two stacks: the last two are of one */
};

static int set_up(void **state)
{
	static struct state made;
	__u32 module, frames[2], stacks[2], threads[2];

	made.profile = profile__new();
	assert_non_null(made.profile);
	assert_int_equal(profile__add_process(made.profile, 0, 1, 0, "a", &made.process), 0);
	assert_int_equal(profile__add_module(made.profile, "/a", "", &module), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(profile__add_frame(made.profile, module, i, false, &frames[i]), 0);
		assert_int_equal(profile__add_stack(made.profile, &frames[i], 1, AP_END_COMPLETE,
						    &stacks[i]),
				 0);
		assert_int_equal(
			profile__add_thread(made.profile, made.process, i ? "b" : "a", &threads[i]),
			0);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(profile__add_count(made.profile, threads[i == 2], stacks[i > 0],
						    AP_MALLOC, 1, 1, &made.counts[i]),
				 0);
	*state = &made;
	return 0;
}

static int tear_down(void **state)
{
	profile__free(((struct state *)*state)->profile);
	return 0;
}

/* Accounts the blocks on @n_pages resident pages of one mapping of @kind. */
static void account(struct state *state, enum memory_kind kind, __u64 n_pages,
		    const struct resident_block *blocks, size_t n, const struct memory_run *before)
{
	struct memory_mapping mapping = {
		.begin = BEGIN,
		.end = BEGIN + 16 * PAGE,
		.rss_bytes = n_pages * PAGE,
		.kind = kind,
	};
	struct memory_run run = { .begin = BEGIN, .end = BEGIN + n_pages * PAGE };
	struct resident_process process = {
		.pid = 1,
		.before = { .runs = (struct memory_run *)before, .n_runs = before != NULL },
		.now = { .of = { .pid = 1,
				 .mappings = &mapping,
				 .n = 1,
				 .rss_bytes = n_pages * PAGE },
			 .runs = &run,
			 .n_runs = 1 },
	};

	assert_int_equal(resident__account(&process, state->process, blocks, n, state->profile), 0);
	assert_true(process.is_accounted);
}

static __u64 part(const struct state *state, enum rss_kind kind)
{
	for (size_t i = 0; i < state->profile->n_rss; i++)
		if (state->profile->rss[i].kind == kind)
			return state->profile->rss[i].size_bytes;
	return 0;
}

static struct profile_blocks blocks_of(const struct state *state, int i)
{
	struct profile_blocks blocks;

	(void)profile__count_blocks(state->profile, &state->profile->counts[state->counts[i] - 1],
				    &blocks);
	return blocks;
}

static void assert_blocks(const struct state *state, int i, __u64 resident_bytes, __u64 pages,
			  __u64 unique_pages, __u64 unique_slack_bytes)
{
	struct profile_blocks blocks = blocks_of(state, i);

	assert_int_equal(blocks.resident_bytes, resident_bytes);
	assert_int_equal(blocks.pages, pages);
	assert_int_equal(blocks.unique_pages, unique_pages);
	assert_int_equal(blocks.unique_slack_bytes, unique_slack_bytes);
}

/* One block alone on a page, two of two stacks on the next one, and a page without any. */
static void test_pages_of_one_stack(void **state)
{
	struct state *made = *state;
	const struct resident_block blocks[] = {
		{ BEGIN + 16, 100, 1, made->counts[0] },
		{ BEGIN + PAGE, 200, 1, made->counts[0] },
		{ BEGIN + PAGE + 512, 300, 1, made->counts[1] },
	};

	account(made, MEMORY_ANONYMOUS, 3, blocks, ARRAY_SIZE(blocks), NULL);
	assert_blocks(made, 0, 300, 2, 1, PAGE - 100);
	assert_blocks(made, 1, 300, 1, 0, 0);
	assert_int_equal(part(made, RSS_BLOCKS), 600);
	assert_int_equal(part(made, RSS_SLACK), 2 * PAGE - 600);
	assert_int_equal(part(made, RSS_FREE), PAGE);
}

/* A page with blocks of two counts of one stack is that stack's alone, and one count's. */
static void test_counts_of_one_stack(void **state)
{
	struct state *made = *state;
	const struct resident_block blocks[] = {
		{ BEGIN, 100, 1, made->counts[1] },
		{ BEGIN + 512, 100, 1, made->counts[2] },
	};

	account(made, MEMORY_ANONYMOUS, 1, blocks, ARRAY_SIZE(blocks), NULL);
	assert_blocks(made, 1, 100, 1, 1, PAGE - 200);
	assert_blocks(made, 2, 100, 0, 0, 0);
}

/* A block of several pages, of which the last is not resident, and one of no bytes. */
static void test_part_of_a_block(void **state)
{
	struct state *made = *state;
	const struct resident_block blocks[] = {
		{ BEGIN + 16, 3 * PAGE, 1, made->counts[0] },
		{ BEGIN + 3 * PAGE + 32, 0, 1, made->counts[1] },
	};

	account(made, MEMORY_ANONYMOUS, 3, blocks, ARRAY_SIZE(blocks), NULL);
	assert_blocks(made, 0, 3 * PAGE - 16, 3, 3, 16);
	assert_blocks(made, 1, 0, 0, 0, 0);
}

/* A block without bytes keeps its page all the same. */
static void test_block_without_bytes(void **state)
{
	struct state *made = *state;
	const struct resident_block block = { BEGIN + 32, 0, 1, made->counts[1] };

	account(made, MEMORY_BREAK, 1, &block, 1, NULL);
	assert_blocks(made, 1, 0, 1, 1, PAGE);
	assert_int_equal(part(made, RSS_SLACK), PAGE);
}

/* A page that was there before is neither slack nor unique: other blocks may be on it. */
static void test_pages_from_before(void **state)
{
	struct state *made = *state;
	const struct resident_block block = { BEGIN + 16, 100, 1, made->counts[0] };
	const struct memory_run before = { .begin = BEGIN, .end = BEGIN + 2 * PAGE };

	account(made, MEMORY_BREAK, 3, &block, 1, &before);
	assert_blocks(made, 0, 100, 1, 0, 0);
	assert_int_equal(part(made, RSS_BEFORE), 2 * PAGE - 100);
	assert_int_equal(part(made, RSS_FREE), PAGE);
	assert_int_equal(part(made, RSS_SLACK), 0);
}

/* Blocks up to the end of the address space, and one without a count. */
static void test_hostile_blocks(void **state)
{
	struct state *made = *state;
	const struct resident_block blocks[] = {
		{ BEGIN, 10, 1, 0 },
		{ BEGIN + PAGE, UINT64_MAX - BEGIN - PAGE, 1, made->counts[0] },
	};

	account(made, MEMORY_ANONYMOUS, 3, blocks, ARRAY_SIZE(blocks), NULL);
	assert_blocks(made, 0, 2 * PAGE, 2, 2, 0);
	assert_int_equal(part(made, RSS_FREE), PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pages_of_one_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counts_of_one_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_part_of_a_block, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_block_without_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pages_from_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_blocks, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
