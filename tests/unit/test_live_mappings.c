// SPDX-License-Identifier: GPL-3.0-or-later
/* Follows made-up changes of mappings: which pages are live, whose they are, and what became of the others, against a
 * model that has an owner for each page. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "live_mappings.h"

#define PAGE	PROFILE_PAGE_BYTES
#define BEGIN	0x10000000ULL
#define PAGES	256
#define NUMBERS 8
#define SPACE	1
#define THREAD	7

struct state {
	struct live_mappings *mappings;
	__u64 now_ns;
	__u64 ended_bytes[NUMBERS + 1], ended[NUMBERS + 1]; /* as on_end() was told */
	__u64 left_bytes[NUMBERS + 1], discarded_bytes[NUMBERS + 1];
};

static int on_end(void *context, const struct mapping_end *end)
{
	struct state *state = context;

	assert_in_range(end->number, 1, NUMBERS);
	assert_true(end->birth_ns <= end->end_ns);
	if (end->how == MAPPING_UNMAPPED) {
		state->ended_bytes[end->number] += end->size_bytes;
		state->ended[end->number] += end->mappings;
	} else if (end->how == MAPPING_LEFT) {
		state->left_bytes[end->number] += end->size_bytes;
	} else {
		state->discarded_bytes[end->number] += end->size_bytes;
	}
	return 0;
}

static int set_up(void **context)
{
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	state->mappings = live_mappings__new(&(struct live_mappings_options){ on_end, state });
	assert_non_null(state->mappings);
	*context = state;
	return 0;
}

static int tear_down(void **context)
{
	struct state *state = *context;

	live_mappings__free(state->mappings);
	free(state);
	return 0;
}

static struct ap_mapping_record make(struct state *state, enum ap_mapping_change change, __u64 page,
				     __u64 n)
{
	state->now_ns += 10;
	return (struct ap_mapping_record){
		.change = change,
		.space = SPACE,
		.thread = THREAD,
		.begin_ns = state->now_ns,
		.end_ns = state->now_ns + 5,
		.address = BEGIN + page * PAGE,
		.size_bytes = n * PAGE,
	};
}

static void handle(struct state *state, const struct ap_mapping_record *change, __u32 number)
{
	assert_int_equal(live_mappings__handle(state->mappings, change, number), 0);
}

static void map(struct state *state, __u64 page, __u64 n, __u32 number)
{
	struct ap_mapping_record change = make(state, AP_MAPPING_MAPPED, page, n);

	change.is_anonymous = 1;
	change.function = AP_MMAP;
	change.protection = PROT_READ | PROT_WRITE;
	handle(state, &change, number);
}

static void unmap(struct state *state, __u64 page, __u64 n)
{
	struct ap_mapping_record change = make(state, AP_MAPPING_UNMAPPED, page, n);

	handle(state, &change, 0);
}

static void move(struct state *state, __u64 from, __u64 before, __u64 to, __u64 after,
		 bool keeps_old, __u32 number)
{
	struct ap_mapping_record change = make(state, AP_MAPPING_MOVED, to, after);

	change.old_address = BEGIN + from * PAGE;
	change.old_bytes = before * PAGE;
	change.keeps_old = keeps_old;
	change.is_anonymous = 1;
	change.function = AP_MREMAP;
	handle(state, &change, number);
}

/* Ends the recording, and compares what is left with @owners, a number for each page. */
static void expect_left(struct state *state, const __u8 owners[PAGES])
{
	__u8 found[PAGES] = { 0 };
	const struct live_mapping *list;
	size_t n;

	assert_int_equal(live_mappings__finish(state->mappings, state->now_ns + 100), 0);
	list = live_mappings__list(state->mappings, &n);
	for (size_t i = 0; i < n; i++) {
		__u64 page = (list[i].mapping.address - BEGIN) / PAGE;

		for (__u64 at = page; at < page + list[i].mapping.size_bytes / PAGE; at++) {
			assert_in_range(at, 0, PAGES - 1);
			assert_int_equal(found[at], 0);
			found[at] = list[i].number;
		}
	}
	assert_memory_equal(found, owners, PAGES);
}

static const struct profile_blocks *blocks_of(struct state *state, __u32 number)
{
	const struct mapping_sums *sums = live_mappings__sums(state->mappings, number);

	assert_non_null(sums);
	return &sums->blocks;
}

/* A mapping ends with its last part; what is left of it is live. */
static void test_parts(void **context)
{
	struct state *state = *context;
	__u8 owners[PAGES] = { 0 };

	map(state, 10, 10, 1);
	unmap(state, 14, 2);
	assert_int_equal(blocks_of(state, 1)->frees, 0);
	assert_int_equal(blocks_of(state, 1)->freed_bytes, 2 * PAGE);
	unmap(state, 0, 14);
	unmap(state, 17, 100);
	assert_int_equal(blocks_of(state, 1)->frees, 0);
	owners[16] = 1;
	map(state, 100, 4, 2);
	unmap(state, 90, 50);
	assert_int_equal(blocks_of(state, 2)->frees, 1);
	assert_int_equal(blocks_of(state, 2)->temporary, 1);
	assert_int_equal(state->ended[2], 1);
	expect_left(state, owners);
	assert_int_equal(state->left_bytes[1], PAGE);
	assert_int_equal(live_mappings__totals(state->mappings)->peak_bytes, 10 * PAGE);
}

/* One call of munmap ends parts of several mappings, and what is replaced has ended, too. */
static void test_several(void **context)
{
	struct state *state = *context;
	struct ap_mapping_record file;
	__u8 owners[PAGES] = { 0 };

	map(state, 10, 4, 1);
	map(state, 14, 4, 2);
	map(state, 20, 4, 3);
	unmap(state, 12, 10);
	owners[10] = owners[11] = 1;
	owners[22] = owners[23] = 3;
	assert_int_equal(blocks_of(state, 2)->frees, 1);
	map(state, 11, 2, 4);
	owners[11] = owners[12] = 4;
	file = make(state, AP_MAPPING_MAPPED, 23, 3);
	handle(state, &file, 0);
	owners[23] = 0;
	expect_left(state, owners);
}

/* What moves stays its owner's; what it grows by is the call's, and what it shrinks by has ended. */
static void test_moves(void **context)
{
	struct state *state = *context;
	__u8 owners[PAGES] = { 0 };

	map(state, 10, 4, 1);
	map(state, 14, 4, 2);
	move(state, 12, 4, 100, 6, false, 3);
	owners[10] = owners[11] = 1;
	memset(owners + 16, 2, 2);
	memset(owners + 100, 1, 2);
	memset(owners + 102, 2, 2);
	memset(owners + 104, 3, 2);
	assert_int_equal(live_mappings__totals(state->mappings)->released, 0);
	move(state, 100, 6, 100, 3, false, 3);
	memset(owners + 103, 0, 3);
	assert_int_equal(live_mappings__totals(state->mappings)->released, 1);
	assert_int_equal(blocks_of(state, 3)->frees, 1);
	move(state, 10, 2, 200, 2, true, 4);
	memset(owners + 200, 4, 2);
	expect_left(state, owners);
}

/* The kernel hands out an address as soon as it is free, which is before munmap() has returned. */
static void test_race(void **context)
{
	struct state *state = *context;
	struct ap_mapping_record late;
	__u8 owners[PAGES] = { 0 };

	map(state, 10, 4, 1);
	late = make(state, AP_MAPPING_UNMAPPED, 10, 4);
	map(state, 10, 2, 2); /* by another thread, meanwhile */
	handle(state, &late, 0);
	owners[10] = owners[11] = 2;
	assert_int_equal(blocks_of(state, 1)->frees, 1);
	assert_int_equal(blocks_of(state, 2)->frees, 0);
	expect_left(state, owners);
}

/* An exec discards, and an exit leaves. */
static void test_spaces(void **context)
{
	struct state *state = *context;
	struct ap_mapping_record change;
	__u8 owners[PAGES] = { 0 };
	__u64 peak, peak_bytes;

	map(state, 10, 4, 1);
	assert_int_equal(live_mappings__end_space(state->mappings, SPACE, state->now_ns, true), 0);
	assert_int_equal(state->discarded_bytes[1], 4 * PAGE);
	assert_int_equal(blocks_of(state, 1)->discarded, 1);
	change = make(state, AP_MAPPING_MAPPED, 50, 8);
	change.space = SPACE + 1;
	change.is_anonymous = 1;
	handle(state, &change, 2);
	assert_int_equal(live_mappings__end_space(state->mappings, SPACE + 1, state->now_ns, false),
			 0);
	memset(owners + 50, 2, 8);
	map(state, 20, 5, 3);
	memset(owners + 20, 3, 5);
	expect_left(state, owners);
	live_mappings__peak(state->mappings, 2, &peak, &peak_bytes);
	assert_int_equal(peak_bytes, 8 * PAGE);
	live_mappings__peak(state->mappings, 3, &peak, &peak_bytes);
	assert_int_equal(peak_bytes, 0);
	assert_int_equal(live_mappings__totals(state->mappings)->peak_bytes, 8 * PAGE);
}

static void test_kinds(void **context)
{
	struct state *state = *context;
	struct ap_mapping_record change = make(state, AP_MAPPING_MAPPED, 0, 4);
	enum mapping_kind kinds[PAGES] = { 0 };
	bool was_given_back[PAGES] = { 0 };
	const struct live_mapping *list;
	size_t n;

	change.is_anonymous = change.is_stack = 1;
	handle(state, &change, 1);
	change = make(state, AP_MAPPING_MAPPED, 10, 4);
	change.is_anonymous = 1;
	handle(state, &change, 2);
	change = make(state, AP_MAPPING_PROTECTED, 11, 1);
	change.protection = PROT_READ | PROT_EXEC;
	handle(state, &change, 0);
	change = make(state, AP_MAPPING_PROTECTED, 11, 2);
	change.protection = PROT_READ;
	handle(state, &change, 0);
	change = make(state, AP_MAPPING_ADVISED, 13, 1);
	handle(state, &change, 0);
	map(state, 20, 1, 3);
	assert_int_equal(live_mappings__finish(state->mappings, state->now_ns), 0);
	list = live_mappings__list(state->mappings, &n);
	for (size_t i = 0; i < n; i++) {
		__u64 page = (list[i].mapping.address - BEGIN) / PAGE;

		for (__u64 at = page; at < page + list[i].mapping.size_bytes / PAGE; at++) {
			kinds[at] = list[i].mapping.kind;
			was_given_back[at] = list[i].mapping.was_given_back;
		}
	}
	assert_int_equal(kinds[0], MAPPING_STACK);
	assert_int_equal(kinds[10], MAPPING_RESERVED);
	assert_int_equal(kinds[11], MAPPING_CODE);
	assert_int_equal(kinds[12], MAPPING_OTHER);
	assert_int_equal(kinds[13], MAPPING_RESERVED);
	assert_int_equal(kinds[20], MAPPING_OTHER);
	assert_true(was_given_back[13] && !was_given_back[12]);
}

static __u32 next(__u64 *random, __u32 below)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*random >> 33) % below;
}

static void step(struct state *state, __u64 *random, __u8 owners[PAGES], __u64 mapped[NUMBERS + 1])
{
	__u32 n = 1 + next(random, 20), page = next(random, PAGES / 2 - 20),
	      number = 1 + next(random, NUMBERS);
	__u32 to = PAGES / 2 + next(random, PAGES / 2 - 20), after = 1 + next(random, 20);
	struct ap_mapping_record change;
	__u8 kept[20] = { 0 };

	switch (next(random, 5)) {
	case 0:
		map(state, page, n, number);
		memset(owners + page, number, n);
		mapped[number] += n * PAGE;
		break;
	case 1:
		unmap(state, to, n);
		memset(owners + to, 0, n);
		break;
	case 2:
		change = make(state, AP_MAPPING_PROTECTED, page, n);
		change.protection = next(random, 2) ? PROT_READ : PROT_READ | PROT_EXEC;
		handle(state, &change, 0);
		break;
	case 3:
		move(state, page, n, to, after, true, number);
		memset(owners + to, number, after);
		mapped[number] += after * PAGE;
		break;
	default:
		move(state, page, n, to, after, false, number);
		memcpy(kept, owners + page, n);
		memset(owners + page, 0, n);
		for (__u32 i = 0; i < after; i++)
			owners[to + i] = i < n ? kept[i] : number;
		mapped[number] += after > n ? (after - n) * PAGE : 0;
	}
}

static void test_random(void **context)
{
	for (__u64 seed = 1; seed <= 50; seed++) {
		__u64 mapped[NUMBERS + 1] = { 0 }, random = seed, peak_bytes = 0, total = 0;
		__u8 owners[PAGES] = { 0 };
		struct state *state;

		set_up(context);
		state = *context;
		for (int i = 0; i < 400; i++) {
			__u64 live = 0;

			step(state, &random, owners, mapped);
			for (int page = 0; page < PAGES; page++)
				live += owners[page] ? PAGE : 0;
			assert_int_equal(live_mappings__totals(state->mappings)->live_bytes, live);
			peak_bytes = live > peak_bytes ? live : peak_bytes;
		}
		expect_left(state, owners);
		/* While a call replaces or shrinks memory, no more is live than before or after it. */
		assert_int_equal(live_mappings__totals(state->mappings)->peak_bytes, peak_bytes);
		for (__u32 number = 1; number <= NUMBERS; number++) {
			__u64 peak, of_number;

			assert_int_equal(mapped[number],
					 state->ended_bytes[number] + state->left_bytes[number]);
			assert_int_equal(blocks_of(state, number)->size_bytes, mapped[number]);
			assert_int_equal(blocks_of(state, number)->freed_bytes,
					 state->ended_bytes[number]);
			assert_int_equal(blocks_of(state, number)->frees, state->ended[number]);
			live_mappings__peak(state->mappings, number, &peak, &of_number);
			total += of_number;
		}
		assert_int_equal(total, peak_bytes);
		tear_down(context);
	}
	set_up(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_race, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spaces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
		cmocka_unit_test_teardown(test_random, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
