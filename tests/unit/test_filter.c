// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case_study.h"
#include "error.h"
#include "filter.h"
#include "fixture.h"
#include "pattern.h"
#include "stack_groups.h"
#include "suppressions.h"

#define EPOCH_NS 200000000ULL

struct view {
	struct profile *profile;
	struct stack_groups *groups;
	struct stack_view *stacks;
};

static int open_view(void **state)
{
	static struct view view;

	view.profile = case_study__new();
	assert_non_null(view.profile);
	assert_int_equal(
		stack_view__new(view.profile, &(struct stack_view_options){ 0 }, &view.stacks), 0);
	view.groups = stack_groups__new(view.profile, view.stacks);
	assert_non_null(view.groups);
	*state = &view;
	return 0;
}

static int close_view(void **state)
{
	struct view *view = *state;

	stack_groups__free(view->groups);
	stack_view__free(view->stacks);
	profile__free(view->profile);
	return 0;
}

/* Lifetimes say the same as counts. */
static void assert_lifetimes(const struct view *view, struct filter_options *options,
			     const struct selection *total)
{
	__u64 blocks = 0, size_bytes = 0;
	struct profile_lifetime lifetime;
	struct error error = { 0 };
	__u32 at = 0;
	bool *selected;

	if (filter__select_lifetimes(view->profile, view->groups, options, &selected, &error))
		fail_msg("%s", error.text);
	for (size_t i = 0; profile__next_lifetime(view->profile, &at, &lifetime); i++) {
		blocks += selected[i] ? lifetime.blocks : 0;
		size_bytes += selected[i] ? lifetime.size_bytes : 0;
	}
	free(selected);
	assert_int_equal(blocks, total->allocations);
	assert_int_equal(size_bytes, total->size_bytes);
}

/* What is selected of each of the six counts, and in all. */
static struct selection apply(const struct view *view, struct filter_options options,
			      struct selection counts[6])
{
	struct filtered filtered;
	struct selection total;
	struct error error = { 0 };

	if (filter__check_options(&options, COST_BYTES, &error) ||
	    filter__apply(view->profile, view->groups, &options, &filtered, &error))
		fail_msg("%s", error.text);
	if (counts)
		memcpy(counts, filtered.counts, 6 * sizeof(*counts));
	assert_int_equal(filtered.whole.allocations, 67001);
	total = filtered.total;
	filtered__release(&filtered);
	assert_lifetimes(view, &options, &total);
	return total;
}

static struct filter_time share(double of)
{
	return (struct filter_time){ .is_given = true, .is_share = true, .share = of };
}

static struct filter_time after(__u64 ns)
{
	return (struct filter_time){ .is_given = true, .ns = ns };
}

static void test_everything(void **state)
{
	struct selection total = apply(*state, (struct filter_options){ 0 }, NULL);

	assert_int_equal(total.allocations, 67001);
	assert_int_equal(total.live, 5501);
	assert_int_equal(total.live_bytes, 348096);
	assert_int_equal(total.temporary, 45000);
	assert_int_equal(total.oldest_ns, EPOCH_NS / 2);
	assert_int_equal(total.unsure, 0);
}

static void test_leaks(void **state)
{
	struct selection counts[6];
	struct selection total = apply(*state, (struct filter_options){ .leaks = true }, counts);

	assert_int_equal(total.allocations, 5501);
	assert_int_equal(total.size_bytes, 348096);
	assert_int_equal(total.live, 5501);
	assert_int_equal(counts[0].live, 1);
	assert_int_equal(counts[1].live, 3000);
	assert_int_equal(counts[2].live, 2000);
	assert_int_equal(counts[3].allocations + counts[4].allocations, 0);
	assert_int_equal(counts[5].live, 500);
}

static void test_leaks_and_freed_are_everything(void **state)
{
	struct selection freed = apply(*state, (struct filter_options){ .freed = true }, NULL);

	assert_int_equal(freed.allocations, 67001 - 5501);
	assert_int_equal(freed.size_bytes, 4516096 - 348096);
	assert_int_equal(freed.live, 0);
	assert_true(freed.oldest_ns == UINT64_MAX);
}

/* Epoch 250 begins at 50 s: older ones are surely 50 s old, and those before that epoch are the last
 * of which it is known. */
static void test_older(void **state)
{
	struct selection total =
		apply(*state, (struct filter_options){ .older = share(0.5) }, NULL);

	assert_int_equal(total.live, 250 * 11 + 1);
	assert_int_equal(total.allocations, total.live);
	assert_int_equal(total.unsure, 11);
	assert_int_equal(total.oldest_ns, EPOCH_NS / 2);
	total = apply(*state, (struct filter_options){ .older = after(50000000000 - 1) }, NULL);
	assert_int_equal(total.live, 250 * 11 + 1);
	total = apply(*state, (struct filter_options){ .older = after(100000000000) }, NULL);
	assert_int_equal(total.live, 0);
	assert_int_equal(total.unsure, 12);
}

static void test_freed_after(void **state)
{
	struct filter_options options = { .freed_after = share(0.98) };
	struct selection counts[6];

	apply(*state, options, counts);
	assert_int_equal(counts[0].allocations + counts[1].allocations + counts[2].allocations, 0);
	assert_int_equal(counts[3].allocations, 2000);
	assert_int_equal(counts[4].allocations, 440);
	/* Of the last ten epochs what was freed at once, and all that was kept to the end. */
	assert_int_equal(counts[5].allocations, 10 * 98 + 500);
	assert_int_equal(counts[5].unsure, 0);
	/* Within an epoch nobody can tell. */
	options.freed_after = after(490 * EPOCH_NS + 1);
	apply(*state, options, counts);
	assert_int_equal(counts[5].allocations, 9 * 98 + 500);
	assert_int_equal(counts[5].unsure, 98);
}

static void test_lifetimes(void **state)
{
	struct selection counts[6];

	/* 10 epochs from birth to death may be 9 and a bit. */
	apply(*state, (struct filter_options){ .min_lifetime = after(10 * EPOCH_NS) }, counts);
	assert_int_equal(counts[1].live, (500 - 10) * 6);
	assert_int_equal(counts[3].allocations, (500 - 11) * 4);
	apply(*state, (struct filter_options){ .max_lifetime = after(EPOCH_NS) }, counts);
	assert_int_equal(counts[1].allocations, 0);
	/* Those born in the last epoch die in it. */
	assert_int_equal(counts[3].allocations, 4);
	assert_int_equal(counts[3].unsure, 4);
	assert_int_equal(counts[5].allocations, 500 * 98 + 1);
	assert_int_equal(counts[5].unsure, 1);
}

static void test_what_is_sure_and_what_is_not_is_all(void **state)
{
	for (__u64 ns = 1; ns < 100000000000; ns = ns * 3 + EPOCH_NS / 7) {
		struct selection longer, shorter, live;

		longer = apply(*state, (struct filter_options){ .min_lifetime = after(ns + 1) },
			       NULL);
		shorter = apply(*state, (struct filter_options){ .max_lifetime = after(ns) }, NULL);
		live = apply(
			*state,
			(struct filter_options){ .leaks = true, .min_lifetime = after(ns + 1) },
			NULL);
		/* Those live that are too young for the one are not freed for the other. */
		assert_int_equal(longer.allocations + longer.unsure + shorter.allocations +
					 (5501 - live.live - live.unsure),
				 67001);
		assert_true(shorter.unsure <= longer.unsure);
	}
}

static void test_sizes(void **state)
{
	struct selection total;

	total = apply(*state, (struct filter_options){ .min_size_bytes = 128 }, NULL);
	assert_int_equal(total.allocations, 1 + 2000 + 10000);
	total = apply(*state,
		      (struct filter_options){
			      .min_size_bytes = 129, .has_max_size = true, .max_size_bytes = 256 },
		      NULL);
	assert_int_equal(total.allocations, 2000);
	total = apply(*state, (struct filter_options){ .has_max_size = true, .max_size_bytes = 47 },
		      NULL);
	assert_int_equal(total.allocations, 0);
	total = apply(*state, (struct filter_options){ .has_max_size = true }, NULL);
	assert_int_equal(total.allocations, 0);
}

static __u64 by_rules(void **state, struct filter_rule first, struct filter_rule second)
{
	struct filter_rule rules[] = { first, second };

	return apply(*state,
		     (struct filter_options){ .rules = rules, .n_rules = second.text ? 2 : 1 },
		     NULL)
		.allocations;
}

static void test_rules(void **state)
{
	const struct filter_rule none = { 0 };

#define RULE(...) ((struct filter_rule){ __VA_ARGS__ })
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, .text = "serve"), none), 17000);
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, .text = "serv"), none), 0);
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, true, "serve"), none), 50001);
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, .text = "lru_map*"), none), 10000);
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, .text = "/^(load|leak)_/"), none),
			 7000);
	/* Both, on one stack. */
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, .text = "serve"),
				  RULE(FILTER_THROUGH, .text = "cache_insert")),
			 10000);
	assert_int_equal(by_rules(state, RULE(FILTER_THROUGH, .text = "serve"),
				  RULE(FILTER_THROUGH, true, "cache_insert")),
			 7000);
	assert_int_equal(by_rules(state, RULE(FILTER_MODULE, .text = "libc.so.6"), none), 50000);
	assert_int_equal(by_rules(state, RULE(FILTER_MODULE, .text = "/usr/bin/*"), none), 67001);
	assert_int_equal(by_rules(state, RULE(FILTER_THREAD, .text = "worker"), none), 50000);
	assert_int_equal(by_rules(state, RULE(FILTER_PROCESS, .text = "4711"), none), 67001);
	assert_int_equal(by_rules(state, RULE(FILTER_PROCESS, .text = "4712"), none), 0);
	assert_int_equal(by_rules(state, RULE(FILTER_PROCESS, .text = "serv?r"), none), 67001);
	assert_int_equal(by_rules(state, RULE(FILTER_FUNCTION, .text = "calloc"), none), 2000);
	/* Either: a call is one of them. */
	assert_int_equal(by_rules(state, RULE(FILTER_FUNCTION, .text = "calloc"),
				  RULE(FILTER_FUNCTION, .text = "malloc")),
			 67001);
	/* Stacks 2 and 3 print alike. */
	assert_int_equal(by_rules(state, RULE(FILTER_STACK, .text = "3"), none), 5000);
	assert_int_equal(
		by_rules(state, RULE(FILTER_STACK, .text = "2"), RULE(FILTER_STACK, .text = "4")),
		7000);
	assert_int_equal(
		by_rules(state, RULE(FILTER_STACK, true, "2"), RULE(FILTER_STACK, true, "6")),
		12001);
}

static void test_bad_options(void **state)
{
	const struct {
		struct filter_options options;
		enum cost cost;
	} bad[] = {
		{ { .leaks = true, .freed = true }, COST_BYTES },
		{ { .older = share(0.1), .max_lifetime = after(1) }, COST_BYTES },
		{ { .suppressions = &(struct suppressions){ 0 } }, COST_BYTES },
		{ { .freed = true }, COST_PEAK },
		{ { .min_lifetime = after(1) }, COST_TEMPORARY },
		{ { .rules = (struct filter_rule[]){ { FILTER_THROUGH, .text = "/[/" } },
		    .n_rules = 1 },
		  COST_BYTES },
	};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		error.text[0] = '\0';
		assert_int_equal(filter__check_options(&bad[i].options, bad[i].cost, &error),
				 -EINVAL);
		assert_true(error.text[0]);
	}
}

static void test_needs_live(void **state)
{
	struct profile *profile = profile__new();
	struct stack_groups *groups;
	struct stack_view *stacks;
	struct filter_options options = { .freed = true };
	struct filtered filtered;
	struct error error;

	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &stacks), 0);
	groups = stack_groups__new(profile, stacks);
	assert_int_equal(filter__apply(profile, groups, &options, &filtered, &error), -ENODATA);
	assert_int_equal(filter__check_cost(profile, COST_LIVE, &error), -ENODATA);
	assert_int_equal(filter__check_cost(profile, COST_BYTES, &error), 0);
	options.freed = false;
	assert_int_equal(filter__apply(profile, groups, &options, &filtered, &error), 0);
	assert_int_equal(filtered.total.allocations, 0);
	filtered__release(&filtered);
	stack_groups__free(groups);
	stack_view__free(stacks);
	profile__free(profile);
}

/* One block of the fixture's first count went at an exec. */
static void test_exec_frees(void **state)
{
	struct view view = { .profile = fixture__new() };
	struct filter_options options = { .freed = true };
	struct filtered filtered;

	assert_int_equal(
		stack_view__new(view.profile, &(struct stack_view_options){ 0 }, &view.stacks), 0);
	view.groups = stack_groups__new(view.profile, view.stacks);
	assert_int_equal(filter__apply(view.profile, view.groups, &options, &filtered, NULL), 0);
	assert_int_equal(filtered.total.allocations, 5 + 1);
	assert_int_equal(filtered.total.size_bytes, 500 + 100);
	filtered__release(&filtered);
	stack_groups__free(view.groups);
	stack_view__free(view.stacks);
	profile__free(view.profile);
}

/* Whatever a file says of time, nothing overflows and nothing is divided by. */
static void test_hostile_times(void **state)
{
	static const char *const epochs[] = { "18446744073709551615", "1", "99999999999999999999",
					      "-1" };
	static const char *const ends[] = { "1e300", "-1", "nan", "", "0.000000001" };
	struct view *view = *state;
	struct filter_options options = { .min_lifetime = share(0.5), .freed_after = share(1) };
	struct filtered filtered;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(ends); j++) {
			profile__set_meta(view->profile, "epoch_ns", epochs[i]);
			profile__set_meta(view->profile, "elapsed_seconds", ends[j]);
			assert_int_equal(filter__apply(view->profile, view->groups, &options,
						       &filtered, &error),
					 0);
			filtered__release(&filtered);
		}
	}
	profile__set_meta(view->profile, "epoch_ns", "0");
	assert_int_equal(filter__apply(view->profile, view->groups, &options, &filtered, &error),
			 -EINVAL);
}

/* elapsed_seconds is rounded; a recording does not end before the last sample of its time line. */
static void test_sample_after_the_end(void **state)
{
	const struct timeline_sample later = { .time_ns = 100000043000ULL };
	/* A hostile file's, which has one run. */
	const struct timeline_sample of_no_run = { .time_ns = 100000044000ULL, .run = 300 };
	struct view *view = *state;
	struct filter_options options = { 0 };
	struct filtered filtered;
	struct error error;

	for (int i = 0; i < 2; i++) {
		const struct timeline_sample *sample = i ? &of_no_run : &later;

		assert_int_equal(profile__add_timeline_sample(view->profile, sample), 0);
		assert_int_equal(
			filter__apply(view->profile, view->groups, &options, &filtered, &error), 0);
		assert_int_equal(filtered.end_ns, sample->time_ns);
		filtered__release(&filtered);
	}
}

/* An expression selects these blocks of the case study, and is unsure of those. */
static void test_where(void **state)
{
	static const struct {
		const char *text;
		__u64 blocks, unsure;
	} cases[] = {
		{ "1", 67001 },
		{ "NULL", 0 },
		{ "thread = 'worker'", 50000 },
		{ "thread <> \"worker\"", 17001 },
		{ "process = 'server' AND pid = 4711 AND run = 1", 67001 },
		{ "function = 'calloc'", 2000 },
		{ "function IN ('malloc', 'calloc')", 67001 },
		{ "stack = 2", 5000 },
		{ "caller = 'leak_session'", 5000 },
		{ "module LIKE 'lib%'", 0 },
		{ "size = 128", 10001 - 1 },
		{ "size BETWEEN 129 AND 256", 2000 },
		{ "allocations = 1", 1 },
		{ "duration = 100", 67001 },
		{ "leaked", 5501 },
		{ "alive = 1", 5501 },
		{ "NOT alive", 67001 - 5501 },
		{ "freed", 67001 - 5501 },
		{ "leaked AND freed", 0 },
		{ "leaked OR freed", 67001 },
		{ "age >= 50", 250 * 11 + 1, 11 },
		{ "age < 50", 249 * 11, 11 },
		{ "age IS NULL", 67001 - 5501 },
		{ "lifetime IS NULL", 5501 },
		{ "freed_at IS NULL OR freed_after IS NULL", 5501 },
		{ "allocated_at >= 0", 67001 },
		{ "allocated_at < 50", 250 * 134 + 1 },
		{ "alive_for >= 0", 67001 },
		{ "freed_after >= 0.98", 2000 + 440 + 10 * 98 + 500 },
		{ "freed_at >= 98", 2000 + 440 + 10 * 98 + 500 },
		{ "freed_at >= 0.98 * duration", 2000 + 440 + 10 * 98 + 500 },
		{ "through('serve')", 17000 },
		{ "THROUGH('serve') AND NOT through('cache_*')", 7000 },
		{ "through_module('libc.so.6')", 50000 },
		{ "matches(thread, '/^w/')", 50000 },
		{ "size > 100 -- of all", 12001 },
		{ "CASE WHEN leaked THEN age >= 0 ELSE 0 END", 5501 },
		/* Epochs are of 0.2 s. What is joined by AND is decided for all times, what is not, for the first and last. */
		{ "lifetime BETWEEN 0.01 AND 0.02 AND allocated_at < 0.2", 0, 98 },
		{ "(lifetime BETWEEN 0.01 AND 0.02 AND allocated_at < 0.2) OR 0", 0, 0 },
		{ "lifetime > 0.01 AND size = 48 AND allocated_at < 0.2", 1, 98 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct filter_where where;
		struct error error = { 0 };
		struct selection total;

		if (filter_where__parse(&where, cases[i].text, &error))
			fail_msg("%s: %s", cases[i].text, error.text);
		total = apply(*state, (struct filter_options){ .where = &where, .n_where = 1 },
			      NULL);
		if (total.allocations != cases[i].blocks || total.unsure != cases[i].unsure)
			fail_msg("%s: expected %llu blocks and %llu unsure ones, got %llu and %llu",
				 cases[i].text, cases[i].blocks, cases[i].unsure, total.allocations,
				 total.unsure);
	}
}

static void test_where_unmatched(void **state)
{
	struct filter_where where[3];

	assert_int_equal(
		filter_where__parse(&where[0], "through('serve') OR through('none')", NULL), 0);
	assert_int_equal(filter_where__parse(&where[1], "NOT through_module('lib*')", NULL), 0);
	assert_int_equal(filter_where__parse(&where[2], "NOT through_module('no*')", NULL), 0);
	apply(*state, (struct filter_options){ .where = where, .n_where = 3 }, NULL);
	assert_string_equal(where[0].unmatched, "none");
	assert_false(where[0].unmatched_is_module);
	assert_string_equal(where[1].unmatched, "");
	assert_string_equal(where[2].unmatched, "no*");
	assert_true(where[2].unmatched_is_module);
}

/* What is no expression is refused, with its place if there is one. */
static void test_where_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "sise > 3", "no such column: sise, at character 1, 'sise > 3'" },
		{ "leaked AND 'caf\303\251' = aged",
		  "no such column: aged, at character 21, 'aged'" },
		{ "leaked AND", "incomplete input" },
		{ "", "is empty" },
		{ " \n", "is empty" },
		{ "1) OR (1", "near \")\": syntax error, at character 2" },
		{ "1 LIMIT 1", "near \"LIMIT\": syntax error, at character 3" },
		{ "leaked; DROP TABLE blocks", "one expression" },
		{ "size > (SELECT 1)", "no SELECT" },
		{ "size IN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)",
		  "no SELECT" },
		{ "rowid > 3", "columns of blocks only" },
		{ "count(*) > 3", "misuse of aggregate" },
		{ "row_number() OVER () > 3", "misuse of window function" },
		{ "size > ?", "no parameters" },
		{ "size > :most", "no parameters" },
		{ "load_extension('x')", "load_extension" },
		{ "through()", "wrong number of arguments" },
		{ "unknown(3)", "no such function: unknown, at character 1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct filter_where where;
		struct error error = { 0 };

		assert_int_equal(filter_where__parse(&where, cases[i].text, &error), -EINVAL);
		if (!strstr(error.text, cases[i].says))
			fail_msg("%s: expected '%s', got '%s'", cases[i].text, cases[i].says,
				 error.text);
	}
}

/* An expression whose fault only its evaluation shows ends with an error, too, within the limits. */
static void test_where_limits(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{ "hex(zeroblob(100000000))", -E2BIG },
		{ "length(replace(hex(zeroblob(8000000)), '00', hex(zeroblob(1000)))) > 0",
		  -E2BIG },
		{ "through(3)", -EINVAL },
		{ "through(thread || allocated_at)", -EINVAL },
		{ "through('/(/')", -EINVAL },
		{ "abs(-9223372036854775808)", -EOVERFLOW },
	};
	const struct view *view = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct filter_where where;
		struct filtered filtered;
		struct error error = { 0 };
		int err;

		assert_int_equal(filter_where__parse(&where, cases[i].text, &error), 0);
		err = filter__apply(view->profile, view->groups,
				    &(struct filter_options){ .where = &where, .n_where = 1 },
				    &filtered, &error);
		if (err != cases[i].err || !error.text[0])
			fail_msg("%s: expected %d, got %d (%s)", cases[i].text, cases[i].err, err,
				 error.text);
	}
}

/* As TemplateMatch() of LLVM's sanitizer_common answers, and its unit test asks. */
static void test_suppression_templates(void **state)
{
	static const struct {
		const char *template, *text;
		bool matches;
	} cases[] = {
		{ "*", "a", true },	    { "a$", "a", true },
		{ "a$", "ba", true },	    { "b*", "bbb", true },
		{ "abc", "abcd", true },    { "dabc", "abc", false },
		{ "abc", "dabcd", true },   { "^abc", "abc", true },
		{ "^abc", "abcd", true },   { "^abc", "dabc", false },
		{ "^abc$", "abcd", false }, { "^a*b", "acb", true },
		{ "a*b$", "acbd", false },  { "a*b$", "acbb", false },
		{ "**", "a", true },	    { "a*$", "ab", true },
		{ "^foo$", "foo", true },   { "^*foo*bar*baz$", "foobaz", false },
		{ "a*c*", "xabxcx", true }, { "$", "a", false },
		{ "", "a", true },	    { "a", "", false },
		{ "*", "", false },	    { "^foo", "barfoo", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (suppression__match(cases[i].template, cases[i].text) != cases[i].matches)
			fail_msg("'%s' on '%s' should be %d", cases[i].template, cases[i].text,
				 cases[i].matches);
	}
}

static void test_suppressions(void **state)
{
	char path[] = "/tmp/allocprof-suppressions-XXXXXX";
	struct suppressions suppressions;
	struct filter_options options = { .leaks = true, .suppressions = &suppressions };
	struct selection total;
	int fd = mkstemp(path);
	static const char text[] = "# known\n\nleak:^read_config$\r\n  leak:parse.c\n"
				   "leak:nowhere\nleak:read_*";

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(suppressions__read(path, &suppressions, NULL), 0);
	unlink(path);
	assert_int_equal(suppressions.n, 4);
	total = apply(*state, options, NULL);
	assert_int_equal(total.live, 5000);
	assert_int_equal(suppressions.list[0].blocks, 1);
	assert_int_equal(suppressions.list[0].size_bytes, 4096);
	assert_int_equal(suppressions.list[1].blocks, 500);
	assert_int_equal(suppressions.list[2].blocks, 0);
	assert_int_equal(suppressions.list[3].blocks, 0);
	suppressions__release(&suppressions);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} cases[] = {
		{ "malloc", "malloc", true },
		{ "malloc", "xmalloc", false },
		{ "x*", "xmalloc", true },
		{ "operator new[]", "operator new[]", true },
		{ "/alloc$/", "xmalloc", true },
		{ "/^alloc/", "xmalloc", false },
		{ "/", "/", true },
		{ "//", "anything", true },
		{ "/usr/lib/x", "/usr/lib/x", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pattern pattern;

		assert_int_equal(pattern__parse(&pattern, cases[i].pattern, NULL), 0);
		if (pattern__match(&pattern, cases[i].name) != cases[i].matches)
			fail_msg("'%s' on '%s' should be %d", cases[i].pattern, cases[i].name,
				 cases[i].matches);
		pattern__release(&pattern);
	}
}

/* Each repetition of a repetition copies what regcomp(3) has made of it. */
static void test_large_patterns(void **state)
{
	static const struct {
		const char *pattern;
		bool is_refused;
	} cases[] = {
		{ "/a+++++/", false },
		{ "/o+++++++++++++++++++++++++++++++++++++++++++++++/", true },
		{ "/(((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+/", true },
		{ "/^.{0,255}(a|b){2,}$/", false },
		{ "/(a{99}){8}/", false },
		{ "/a[-z]z//o+++-$/*++++++++++/", true },
		{ "/(a*+){1000}/", true },
		{ "/(a{99}){999}/", true },
		{ "/a{32767}{32767}/", true },
		{ "/[+[:alpha:]]+[]+++++++++++++++]+[^]+++++++++++++++]/", false },
		{ "/\\(\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\)/", false },
	};
	char nested[20000], names[20000];
	struct pattern long_one;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pattern pattern;
		int err = pattern__parse(&pattern, cases[i].pattern, NULL);

		if (err != (cases[i].is_refused ? -EINVAL : 0))
			fail_msg("'%s': %d", cases[i].pattern, err);
		pattern__release(&pattern);
	}
	/* A long expression without repetitions is not refused. */
	memset(names, 'a', sizeof(names));
	for (size_t i = 20; i < sizeof(names); i += 20)
		names[i] = '|';
	names[0] = names[sizeof(names) - 2] = '/';
	names[sizeof(names) - 1] = '\0';
	assert_int_equal(pattern__parse(&long_one, names, NULL), 0);
	pattern__release(&long_one);
	memset(nested, '(', sizeof(nested));
	nested[0] = nested[sizeof(nested) - 2] = '/';
	nested[sizeof(nested) - 1] = '\0';
	assert_int_equal(pattern__parse(&(struct pattern){ 0 }, nested, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_VIEW(test) cmocka_unit_test_setup_teardown(test, open_view, close_view)
		WITH_VIEW(test_everything),
		WITH_VIEW(test_leaks),
		WITH_VIEW(test_leaks_and_freed_are_everything),
		WITH_VIEW(test_older),
		WITH_VIEW(test_freed_after),
		WITH_VIEW(test_lifetimes),
		WITH_VIEW(test_what_is_sure_and_what_is_not_is_all),
		WITH_VIEW(test_sizes),
		WITH_VIEW(test_rules),
		WITH_VIEW(test_suppressions),
		WITH_VIEW(test_hostile_times),
		WITH_VIEW(test_sample_after_the_end),
		WITH_VIEW(test_where),
		WITH_VIEW(test_where_unmatched),
		WITH_VIEW(test_where_limits),
		cmocka_unit_test(test_where_refused),
		cmocka_unit_test(test_exec_frees),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_needs_live),
		cmocka_unit_test(test_suppression_templates),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_large_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
