// SPDX-License-Identifier: GPL-3.0-or-later
/* Searches this process's own memory for pointers to blocks, which are parts of an array of words;
 * each case says which words lead where. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "array.h"
#include "reach_blocks.h"
#include "reach_roots.h"
#include "reach_scan.h"

#define WORDS	   8 /* of a block */
#define MOST	   16
#define ROOTS	   16
#define BLOCK_SIZE (WORDS * sizeof(__u64))

struct state {
	/* Blocks number 0 to 15, each followed by as many words of no block. */
	__u64 *words;
	__u64 *roots;
	__u64 begins[MOST], sizes[MOST];
	struct reach_blocks blocks;
	struct reach_range range;
	struct reach_roots of;
	__u8 classes[MOST];
};

static __u64 *block(struct state *state, size_t i)
{
	return state->words + 2 * WORDS * i;
}

static __u64 address(struct state *state, size_t i)
{
	return (__u64)block(state, i);
}

static int set_up(void **out)
{
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	state->words = calloc(2 * WORDS * MOST, sizeof(__u64));
	state->roots = calloc(ROOTS, sizeof(__u64));
	assert_true(state->words && state->roots);
	for (size_t i = 0; i < MOST; i++) {
		state->begins[i] = address(state, i);
		state->sizes[i] = BLOCK_SIZE;
	}
	state->blocks = (struct reach_blocks){ state->begins, state->sizes, MOST, MOST };
	state->range = (struct reach_range){
		.begin = (__u64)state->roots,
		.end = (__u64)(state->roots + ROOTS),
	};
	state->of.memory = (struct reach_ranges){ &state->range, 1, 1 };
	*out = state;
	return 0;
}

static int tear_down(void **out)
{
	struct state *state = *out;

	free(state->words);
	free(state->roots);
	free(state);
	return 0;
}

static struct reach_figures search(struct state *state)
{
	int memory = open("/proc/self/mem", O_RDONLY),
	    pagemap = open("/proc/self/pagemap", O_RDONLY);
	struct reach_figures figures;

	assert_true(memory >= 0 && pagemap >= 0);
	assert_int_equal(reach_scan__run(&state->blocks, &state->of, memory, pagemap,
					 state->classes, &figures),
			 0);
	close(memory);
	close(pagemap);
	return figures;
}

/* Asserts the classes of the first blocks: a letter each, of reachable, possible, indirect, lost. */
static void assert_classes(const struct state *state, const char *expected)
{
	static const char letters[] = "?rpil";

	for (size_t i = 0; expected[i]; i++)
		if (letters[state->classes[i]] != expected[i])
			fail_msg("block %zu is '%c', expected '%c'", i, letters[state->classes[i]],
				 expected[i]);
}

static void test_chain(void **out)
{
	struct state *state = *out;

	state->roots[3] = address(state, 0);
	block(state, 0)[7] = address(state, 2);
	block(state, 2)[0] = address(state, 1);
	assert_int_equal(search(state).unread_bytes, 0);
	assert_classes(state, "rrrlllllllllllll");
}

/* A word counts from the block's first byte to its last. */
static void test_inside(void **out)
{
	struct state *state = *out;

	state->roots[0] = address(state, 0) + 1;
	state->roots[1] = address(state, 1) + BLOCK_SIZE - 1;
	state->roots[2] = address(state, 2) + BLOCK_SIZE;
	state->roots[3] = address(state, 4) - 1;
	block(state, 0)[1] = address(state, 5);
	search(state);
	assert_classes(state, "pplllp");
}

/* Whether a way without pointers to the inside is found first or last does not matter. */
static void test_both_ways(void **out)
{
	struct state *state = *out;

	state->roots[0] = address(state, 0) + 9;
	block(state, 0)[0] = address(state, 1);
	block(state, 1)[0] = address(state, 2);
	block(state, 4)[2] = address(state, 1);
	state->roots[5] = address(state, 3) + 9;
	state->roots[6] = address(state, 4);
	state->roots[7] = address(state, 3);
	search(state);
	assert_classes(state, "prrrr");
}

static void test_lost(void **out)
{
	struct state *state = *out;

	/* A chain, a circle of three, and two that point to one. */
	block(state, 1)[0] = address(state, 0);
	block(state, 0)[0] = address(state, 2) + 8;
	block(state, 3)[0] = address(state, 4);
	block(state, 4)[0] = address(state, 5);
	block(state, 5)[0] = address(state, 3);
	block(state, 6)[0] = address(state, 8);
	block(state, 7)[0] = address(state, 8);
	block(state, 9)[0] = address(state, 9);
	search(state);
	assert_classes(state, "ililiillil");
}

static void test_registers(void **out)
{
	struct state *state = *out;
	__u64 words[] = { 1, address(state, 1), ~0ULL };

	state->of.words = words;
	state->of.n_words = ARRAY_SIZE(words);
	search(state);
	assert_classes(state, "lrl");
}

static void test_only_begins(void **out)
{
	struct state *state = *out;

	state->range.only_begins = true;
	state->roots[0] = address(state, 0);
	state->roots[1] = address(state, 1) + 16;
	block(state, 0)[1] = address(state, 2) + 16;
	search(state);
	assert_classes(state, "rlp");
}

/* Blocks that lie in memory with roots are no roots. */
static void test_blocks_among_roots(void **out)
{
	struct state *state = *out;

	state->range.begin = (__u64)state->words;
	state->range.end = (__u64)(state->words + 2 * WORDS * MOST);
	block(state, 0)[1] = address(state, 1);
	block(state, 2)[WORDS] = address(state, 3); /* behind the block */
	search(state);
	assert_classes(state, "lilr");
}

static void test_sizes(void **out)
{
	struct state *state = *out;

	state->sizes[0] = 0;
	state->sizes[1] = 0;
	state->sizes[2] = 7;
	state->sizes[3] = 15;
	state->roots[0] = address(state, 0);
	state->roots[1] = address(state, 1) + 1;
	state->roots[2] = address(state, 2);
	block(state, 2)[0] = address(state, 4); /* its last byte is not the block's */
	state->roots[3] = address(state, 3);
	block(state, 3)[0] = address(state, 5);
	block(state, 3)[1] = address(state, 6);
	search(state);
	assert_classes(state, "rlrrlrl");
}

static void test_cookies(void **out)
{
	struct state *state = *out;

	state->roots[0] = address(state, 0) + 8; /* of 7 elements of 8 bytes */
	block(state, 0)[0] = 7;
	state->roots[1] = address(state, 1) + 8; /* of 5 elements: they would not fill it */
	block(state, 1)[0] = 5;
	state->roots[2] = address(state, 2) + 24; /* a string of 39 bytes at the most */
	block(state, 2)[0] = 10;
	block(state, 2)[1] = 39;
	state->roots[3] = address(state, 3) + 24;
	block(state, 3)[0] = 40; /* longer than there is room */
	block(state, 3)[1] = 39;
	state->roots[4] = address(state, 4) + 8; /* the size is before it */
	block(state, 4)[0] = BLOCK_SIZE - 8;
	search(state);
	assert_classes(state, "rprpr");
}

/* Two tables of functions: one at the beginning of the object, and one within. */
static void test_tables_of_functions(void **out)
{
	struct state *state = *out;
	static __u64 table[16];
	struct reach_range file = { (__u64)table, (__u64)(table + 16), 0, 0 };
	struct reach_range code = { 0x1000, 0x2000, 0, 0 };

	table[0] = 0x1100;
	table[2] = 0x1200;
	state->of.files = (struct reach_ranges){ &file, 1, 1 };
	state->of.code = (struct reach_ranges){ &code, 1, 1 };
	state->roots[0] = address(state, 0) + 32;
	block(state, 0)[0] = block(state, 0)[4] = (__u64)table;
	state->roots[1] = address(state, 1) + 32;
	block(state, 1)[0] = (__u64)table;
	block(state, 1)[4] = 0x1100;
	search(state);
	assert_classes(state, "rp");
}

/* The search reads only those pages of a large block that were touched. */
static void test_untouched_memory(void **out)
{
	struct state *state = *out;
	size_t size = 1UL << 30;
	__u64 *large = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	__u64 begins[] = { address(state, 0), (__u64)large };
	__u64 sizes[] = { BLOCK_SIZE, size };
	struct reach_figures figures;

	assert_ptr_not_equal(large, MAP_FAILED);
	assert_int_equal(madvise(large, size, MADV_NOHUGEPAGE), 0);
	large[size / 16 + 1] = address(state, 0);
	state->roots[2] = (__u64)large;
	if (begins[0] > begins[1]) {
		begins[1] = begins[0];
		begins[0] = (__u64)large;
		sizes[0] = size;
		sizes[1] = BLOCK_SIZE;
	}
	state->blocks = (struct reach_blocks){ begins, sizes, 2, 2 };
	figures = search(state);
	assert_classes(state, "rr");
	assert_in_range(figures.read_bytes, 4096, 64 << 10);
	munmap(large, size);
}

/* The search counts the bytes that it cannot read. */
static void test_unread(void **out)
{
	struct state *state = *out;
	__u64 absent = (__u64)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap((void *)absent, 4096);
	state->begins[MOST - 1] = absent;
	if (absent < state->begins[0])
		return; /* blocks have to ascend */
	state->roots[0] = absent;
	assert_int_equal(search(state).unread_bytes, BLOCK_SIZE);
	assert_int_equal(state->classes[MOST - 1], REACH_REACHABLE);
}

static void test_no_blocks(void **out)
{
	struct state *state = *out;

	state->blocks.n = 0;
	assert_int_equal(search(state).read_bytes, 0);
}

static bool is_reached(struct state *state, const bool *from, size_t to, bool begins)
{
	for (size_t i = 0; i < MOST; i++)
		for (size_t k = 0; from[i] && k < WORDS; k++)
			if (block(state, i)[k] >= address(state, to) &&
			    block(state, i)[k] < address(state, to) + (begins ? 1 : BLOCK_SIZE))
				return true;
	for (size_t k = 0; k < ROOTS; k++)
		if (state->roots[k] >= address(state, to) &&
		    state->roots[k] < address(state, to) + (begins ? 1 : BLOCK_SIZE))
			return true;
	return false;
}

/* Fills @reached with what the roots reach by pointers to beginnings, or by any. */
static void reach_all(struct state *state, bool *reached, bool begins)
{
	bool is_new = true;

	memset(reached, 0, MOST * sizeof(*reached));
	while (is_new) {
		is_new = false;
		for (size_t i = 0; i < MOST; i++)
			if (!reached[i] && is_reached(state, reached, i, begins))
				reached[i] = is_new = true;
	}
}

static size_t draw(__u64 *numbers, size_t below)
{
	*numbers = *numbers * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*numbers >> 33) % below;
}

/* Against a search that follows every word. */
static void test_random_graphs(void **out)
{
	struct state *state = *out;
	__u64 numbers = 1;

	for (int round = 0; round < 300; round++) {
		bool certain[MOST], any[MOST];

		for (size_t i = 0; i < 2 * WORDS * MOST; i++)
			state->words[i] = 0;
		memset(state->roots, 0, ROOTS * sizeof(*state->roots));
		for (int i = 0; i < 14; i++) {
			size_t to = draw(&numbers, MOST);
			/* No multiple of 8 bytes, which could look like one behind a cookie. */
			__u64 inside = draw(&numbers, 3) ? 0 : 12;

			if (draw(&numbers, 6))
				block(state, draw(&numbers, MOST))[draw(&numbers, WORDS)] =
					address(state, to) + inside;
			else
				state->roots[draw(&numbers, ROOTS)] = address(state, to) + inside;
		}
		search(state);
		reach_all(state, certain, true);
		reach_all(state, any, false);
		for (size_t i = 0; i < MOST; i++) {
			assert_int_equal(state->classes[i] == REACH_REACHABLE, certain[i]);
			assert_int_equal(state->classes[i] == REACH_POSSIBLE,
					 any[i] && !certain[i]);
			assert_int_equal(state->classes[i] == REACH_LOST ||
						 state->classes[i] == REACH_INDIRECT,
					 !any[i]);
		}
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_chain),
		CASE(test_inside),
		CASE(test_both_ways),
		CASE(test_lost),
		CASE(test_registers),
		CASE(test_only_begins),
		CASE(test_blocks_among_roots),
		CASE(test_sizes),
		CASE(test_cookies),
		CASE(test_tables_of_functions),
		CASE(test_untouched_memory),
		CASE(test_unread),
		CASE(test_no_blocks),
		CASE(test_random_graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
