// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "diff_output.h"
#include "diff_story.h"
#include "error.h"
#include "fixture.h"
#include "profile.h"
#include "stack_view.h"

#define PAIRS_OF_PROFILES 1000

/* What is compared, with what it must outlive. */
struct subject {
	struct profile *profile;
	struct stack_view *view;
	struct selection *counts; /* NULL: all */
};

static struct subject view_of(struct profile *profile)
{
	struct subject subject = { .profile = profile };

	assert_non_null(profile);
	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &subject.view),
			 0);
	return subject;
}

static void free_subject(struct subject *subject)
{
	stack_view__free(subject->view);
	profile__free(subject->profile);
	free(subject->counts);
}

static struct diff *compare(const struct subject *before, const struct subject *after,
			    struct diff_options options)
{
	const struct diff_input inputs[DIFF_SIDES] = {
		{ before->profile, before->view, before->counts },
		{ after->profile, after->view, after->counts },
	};
	struct error error = { 0 };
	struct diff *diff = NULL;

	if (diff__new(inputs, &options, &diff, &error))
		fail_msg("%s", error.text);
	return diff;
}

/* Lines of text, to be compared as sets. */
struct lines {
	char **lines;
	size_t n;
};

static void add_line(struct lines *lines, char *line)
{
	lines->lines = realloc(lines->lines, (lines->n + 1) * sizeof(*lines->lines));
	assert_non_null(lines->lines);
	lines->lines[lines->n++] = line;
}

static void free_lines(struct lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		free(lines->lines[i]);
	free(lines->lines);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_lines(struct lines *lines)
{
	if (lines->n)
		qsort(lines->lines, lines->n, sizeof(*lines->lines), compare_lines);
}

static void assert_same_lines(struct lines *expected, struct lines *got, __u64 seed,
			      const char *what)
{
	sort_lines(expected);
	sort_lines(got);
	for (size_t i = 0; i < expected->n || i < got->n; i++) {
		const char *a = i < expected->n ? expected->lines[i] : "(nothing)";
		const char *b = i < got->n ? got->lines[i] : "(nothing)";

		if (strcmp(a, b))
			fail_msg("seed %llu, %s: expected %s, got %s", seed, what, a, b);
	}
	free_lines(expected);
	free_lines(got);
}

/* Random numbers that are the same everywhere. */
static __u32 draw(__u64 *state, __u32 below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (__u32)(*state >> 33) % below;
}

#define FUNCTIONS 24
#define STACKS	  40
#define DEPTH	  10

static const char *const words[] = { "parse", "read", "write", "find", "send", "make" };
static const char *const things[] = { "header", "body", "session", "row" };

/* A program; its after is before with something done to it. */
struct program {
	char names[FUNCTIONS][64];
	__u32 stacks[STACKS][DEPTH];
	__u32 depth[STACKS];
	enum ap_function function[STACKS];
	__u64 calls[STACKS];
	__u32 n;
};

/* Of a crowded one many stacks are equally alike, and cost the same. */
static void make_program(struct program *program, bool is_crowded, __u64 *state)
{
	__u32 functions = is_crowded ? 5 : FUNCTIONS, most_calls = is_crowded ? 2 : 200;

	for (__u32 i = 0; i < FUNCTIONS; i++)
		snprintf(program->names[i], sizeof(program->names[i]), "%s_%s", words[i / 4 % 6],
			 things[i % 4]);
	program->n = draw(state, STACKS);
	for (__u32 i = 0; i < program->n; i++) {
		program->depth[i] = draw(state, DEPTH + 1);
		program->function[i] = draw(state, 3);
		program->calls[i] = 1 + draw(state, most_calls);
		for (__u32 at = 0; at < program->depth[i]; at++)
			program->stacks[i][at] = draw(state, at < 4 ? functions : 3);
	}
}

static void change_stack(struct program *program, __u32 i, __u64 *state)
{
	__u32 *frames = program->stacks[i], *depth = &program->depth[i], at;

	switch (draw(state, 8)) {
	case 0:
		program->calls[i] += draw(state, 20);
		break;
	case 1:
		program->calls[i] = 1 + draw(state, 200);
		break;
	case 2:
		if (*depth) {
			at = draw(state, *depth);
			memmove(frames + at, frames + at + 1, (*depth - at - 1) * sizeof(*frames));
			--*depth;
		}
		break;
	case 3:
		if (*depth)
			frames[draw(state, *depth)] = draw(state, FUNCTIONS);
		break;
	case 5:
		for (at = 0; at < *depth; at++)
			frames[at] = draw(state, 4) ? frames[at] : draw(state, 5);
		break;
	case 4:
		program->function[i] = draw(state, 3);
		break;
	default:
		break;
	}
}

static void change_program(struct program *program, __u64 *state)
{
	for (__u32 i = draw(state, 4); i; i--) {
		char *name = program->names[draw(state, FUNCTIONS)];

		snprintf(name + strlen(name), 64 - strlen(name), "%s",
			 draw(state, 2) ? "_v2" : " [clone .isra.0]");
	}
	for (__u32 i = 0; i < program->n; i++)
		change_stack(program, i, state);
	if (program->n)
		program->n -= draw(state, program->n < 4 ? program->n : 4);
}

/* Every third function has no name. */
static bool is_named(__u32 function)
{
	return function % 3 != 2;
}

static __u32 add_program_frame(struct profile *profile, const struct program *program,
			       __u32 function, __u64 offset)
{
	__u32 id;

	assert_int_equal(profile__add_frame(profile, 1 + function % 2, 64ULL * function + offset,
					    false, &id),
			 0);
	if (is_named(function))
		assert_int_equal(fixture__name_frame(profile, id, program->names[function]), 0);
	return id;
}

/* Spread over processes and threads, and over places in functions. */
static struct subject profile_of(const struct program *program, const char *build_id, __u64 *state)
{
	struct profile *profile = profile__new();
	__u32 id, count, frames[DEPTH];

	assert_non_null(profile);
	assert_int_equal(profile__add_module(profile, "/bin/app", build_id, &id), 0);
	assert_int_equal(profile__add_module(profile, "/lib/libx.so", "00", &id), 0);
	for (__u32 i = 0; i < 3; i++) {
		assert_int_equal(profile__add_process(profile, 0, i + 1, i, "app", &id), 0);
		assert_int_equal(
			profile__add_rss(profile, &(struct profile_rss){ id, RSS_BLOCKS, 1 }), 0);
		assert_int_equal(profile__add_thread(profile, id, "app", &id), 0);
	}
	for (__u32 i = 0; i < program->n; i++) {
		__u64 left = program->calls[i];

		while (left) {
			__u64 calls = 1 + draw(state, left);

			for (__u32 at = 0; at < program->depth[i]; at++) {
				__u32 function = program->stacks[i][at];

				frames[at] =
					add_program_frame(profile, program, function,
							  is_named(function) ? draw(state, 4) : 0);
			}
			assert_int_equal(profile__add_stack(profile, frames, program->depth[i],
							    draw(state, 2) ? AP_END_COMPLETE
									   : AP_END_NO_TABLE,
							    &id),
					 0);
			assert_int_equal(profile__add_count(profile, 1 + draw(state, 3), id,
							    program->function[i], calls, 10 * calls,
							    &count),
					 0);
			left -= calls;
		}
		/* No allocations. */
		assert_int_equal(profile__add_count(profile, 1, id, AP_FREE, 7, 0, &count), 0);
		assert_int_equal(
			profile__add_blocks(
				profile,
				&(struct profile_blocks){ .count = count,
							  .reached = { [PROFILE_LOST] = { 1 } } }),
			0);
	}
	return view_of(profile);
}

/* What must come out for one side, straight from the program: "malloc|f@app|... = cost". */
static void expect_side(const struct program *program, bool same_build, __u32 depth,
			struct lines *expected)
{
	struct lines keys = { 0 };

	for (__u32 i = 0; i < program->n; i++) {
		__u32 n = depth && depth < program->depth[i] ? depth : program->depth[i];
		char key[2048];
		size_t len = snprintf(key, sizeof(key), "%s",
				      profile__function_name(program->function[i]));

		for (__u32 at = 0; at < n; at++) {
			__u32 function = program->stacks[i][at];
			const char *module = function % 2 ? "libx.so" : "app";

			if (is_named(function))
				len += snprintf(key + len, sizeof(key) - len, "|%s@%s",
						program->names[function], module);
			else if (function % 2 || same_build)
				len += snprintf(key + len, sizeof(key) - len, "|[%s+0x%x]@%s",
						module, 64 * function, module);
			else
				len += snprintf(key + len, sizeof(key) - len, "|[%s]@%s", module,
						module);
		}
		snprintf(key + len, sizeof(key) - len, " = %010llu", program->calls[i]);
		add_line(&keys, strdup(key));
	}
	sort_lines(&keys);
	for (size_t i = 0; i < keys.n;) {
		size_t len = strrchr(keys.lines[i], '=') - keys.lines[i], first = i;
		__u64 cost = 0;
		char *line;

		for (; i < keys.n && !strncmp(keys.lines[i], keys.lines[first], len + 1); i++)
			cost += strtoull(keys.lines[i] + len + 1, NULL, 10);
		assert_true(asprintf(&line, "%.*s= %llu", (int)len, keys.lines[first], cost) > 0);
		add_line(expected, line);
	}
	free_lines(&keys);
}

/* The stack of @entry on @side, or NULL. */
static char *entry_text(const struct diff *diff, const struct diff_entry *entry,
			enum diff_side side)
{
	struct diff_mark *marks;
	char text[4096] = "";
	size_t n, len = 0;

	assert_int_equal(diff_entry__marks(diff, entry, &marks, &n), 0);
	for (size_t i = 0; i < n; i++) {
		if (!marks[i].is_in[side])
			continue;
		len += snprintf(text + len, sizeof(text) - len, "%s%s%s%s", len ? "|" : "",
				marks[i].name->function, *marks[i].name->module ? "@" : "",
				marks[i].name->module);
	}
	free(marks);
	return len ? strdup(text) : NULL;
}

static void collect_side(const struct diff *diff, enum diff_side side, struct lines *got)
{
	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];
		char *text = entry_text(diff, entry, side), *line;

		assert_int_equal(!!text, !!entry->stacks[side]);
		if (!text)
			continue;
		assert_true(asprintf(&line, "%s = %llu", text,
				     diff_entry__cost(diff, entry, side).median) > 0);
		add_line(got, line);
		free(text);
	}
}

/* Whole entries, as they are in @diff or as they would be with its sides swapped. */
static void collect_entries(const struct diff *diff, bool swapped, struct lines *got)
{
	static const enum diff_section other[] = {
		[DIFF_ONLY_BEFORE] = DIFF_ONLY_AFTER,
		[DIFF_ONLY_AFTER] = DIFF_ONLY_BEFORE,
		[DIFF_CHANGED] = DIFF_CHANGED,
		[DIFF_PAIRED] = DIFF_PAIRED,
		[DIFF_ALIKE] = DIFF_ALIKE,
		[DIFF_BELOW_MIN] = DIFF_BELOW_MIN,
	};

	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];
		char *before = entry_text(diff, entry, swapped ? DIFF_AFTER : DIFF_BEFORE);
		char *after = entry_text(diff, entry, swapped ? DIFF_BEFORE : DIFF_AFTER);
		enum diff_section section = swapped ? other[entry->section] : entry->section;
		char *line;

		assert_true(asprintf(&line, "%s %lld %u: %s -> %s", diff__section_name(section),
				     swapped ? -entry->difference : entry->difference,
				     entry->similarity, before ? before : "",
				     after ? after : "") > 0);
		add_line(got, line);
		free(before);
		free(after);
	}
}

static void assert_sums(const struct diff *diff, const __u64 totals[DIFF_SIDES], __u64 seed)
{
	size_t n = 0;

	for (int side = 0; side < DIFF_SIDES; side++) {
		__u64 sum = 0;

		for (int section = 0; section < DIFF_SECTIONS; section++)
			sum += diff->sections[section].costs[side];
		if (sum + diff->between_runs[side] != totals[side] ||
		    diff->profiles[side].total != totals[side])
			fail_msg("seed %llu, side %d: sections sum to %llu, the total is %llu, "
				 "calls are %llu",
				 seed, side, sum, diff->profiles[side].total, totals[side]);
	}
	for (int section = 0; section < DIFF_SECTIONS; section++) {
		const struct diff_sum *sum = &diff->sections[section];
		__s64 difference = 0;

		for (size_t i = 0; i < sum->n; i++) {
			const struct diff_entry *entry = &diff->entries[sum->first + i];

			assert_int_equal(entry->section, section);
			if (section != DIFF_ALIKE &&
			    (section == DIFF_BELOW_MIN) !=
				    ((__u64)llabs(entry->difference) < diff->options.min))
				fail_msg("seed %llu: a difference of %lld is %s", seed,
					 entry->difference, diff__section_name(section));
			difference += entry->difference;
			if (i && llabs(entry[-1].difference) < llabs(entry->difference))
				fail_msg("seed %llu: not the greatest difference first", seed);
		}
		assert_int_equal(difference, diff__difference(sum->costs));
		n += sum->n;
	}
	assert_int_equal(n, diff->n_entries);
}

/* diff(A, B) = -diff(B, A), by section and stack, and diff(A, A) is empty. */
static void check_both_ways(const struct diff *diff, const struct subject *subjects, __u64 seed)
{
	struct diff *back = compare(&subjects[1], &subjects[0], diff->options);
	struct diff *same = compare(&subjects[0], &subjects[0], diff->options);
	struct lines there = { 0 }, again = { 0 };

	if (same->sections[DIFF_ALIKE].n != same->n_entries)
		fail_msg("seed %llu: a profile differs from itself", seed);
	collect_entries(diff, false, &there);
	collect_entries(back, true, &again);
	assert_same_lines(&there, &again, seed, "swapped");
	diff__free(back);
	diff__free(same);
}

static void check_pair(const struct program *programs, const struct subject *subjects,
		       bool same_build, struct diff_options options, __u64 seed)
{
	struct diff *diff = compare(&subjects[0], &subjects[1], options);
	__u64 totals[DIFF_SIDES] = { 0 };

	for (int side = 0; side < DIFF_SIDES; side++) {
		struct lines expected = { 0 }, got = { 0 };

		for (__u32 i = 0; i < programs[side].n; i++)
			totals[side] += programs[side].calls[i];
		expect_side(&programs[side], same_build, options.depth, &expected);
		collect_side(diff, side, &got);
		assert_same_lines(&expected, &got, seed, side ? "AFTER" : "BEFORE");
	}
	assert_sums(diff, totals, seed);
	if (options.no_pairing)
		assert_int_equal(diff->sections[DIFF_PAIRED].n, 0);
	check_both_ways(diff, subjects, seed);
	diff__free(diff);
}

/* As --live and a filter leave them: what became of a count's blocks, and for some that nothing is in. */
static void select_blocks(struct subject *subject, __u64 *state)
{
	const struct profile *profile = subject->profile;

	assert_int_equal(profile__set_meta(subject->profile, "epoch_ns", "1000000000"), 0);
	subject->counts = calloc(profile->n_counts + 1, sizeof(*subject->counts));
	assert_non_null(subject->counts);
	for (size_t i = 0; i < profile->n_counts; i++) {
		struct selection *counted = &subject->counts[i];

		*counted = selection_none;
		if (!draw(state, 8))
			continue;
		counted->allocations = profile->counts[i].calls;
		counted->size_bytes = draw(state, 1000);
		counted->live = draw(state, counted->allocations + 1);
		counted->live_bytes = counted->live * (1 + draw(state, 4));
		counted->temporary = draw(state, counted->allocations + 1);
		counted->peak = draw(state, 2);
		counted->peak_bytes = counted->peak * draw(state, 100);
		counted->resident_bytes = draw(state, counted->live_bytes + 1);
		counted->unique_pages = counted->resident_bytes ? draw(state, 3) : 0;
		counted->reached[PROFILE_LOST].blocks = draw(state, counted->live + 1);
		counted->reached[PROFILE_LOST].size_bytes =
			counted->reached[PROFILE_LOST].blocks * draw(state, 4);
	}
}

static void check_cost(const struct subject *subjects, struct diff_options options, __u64 seed)
{
	__u64 totals[DIFF_SIDES] = { 0 };
	struct diff *diff;

	/* A profile without counts does not know. */
	for (int side = 0; side < DIFF_SIDES; side++)
		if (cost__needs_reach(options.cost) && !profile__has_reach(subjects[side].profile))
			return;
	diff = compare(&subjects[0], &subjects[1], options);
	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct profile *profile = subjects[side].profile;

		for (size_t i = 0; i < profile->n_counts; i++)
			if (profile->counts[i].function != AP_FREE)
				totals[side] += cost__of(options.cost, &subjects[side].counts[i]);
	}
	assert_sums(diff, totals, seed);
	check_both_ways(diff, subjects, seed);
	diff__free(diff);
}

static void test_properties(void **state)
{
	const struct diff_options variants[] = {
		{ 0 },
		{ .no_pairing = true },
		{ .min = 10 },
		{ .depth = 3 },
		{ .depth = 2, .min = 5, .no_pairing = true },
	};
	struct diff_options options;
	size_t paired = 0;

	for (__u64 seed = 1; seed <= PAIRS_OF_PROFILES; seed++) {
		bool same_build = seed % 2, is_crowded = seed % 4 < 2;
		__u64 numbers = seed;
		struct program programs[DIFF_SIDES];
		struct subject subjects[DIFF_SIDES];
		struct diff *diff;

		make_program(&programs[0], is_crowded, &numbers);
		programs[1] = programs[0];
		if (seed % 20)
			change_program(&programs[1], &numbers);
		else
			make_program(&programs[1], is_crowded, &numbers);
		subjects[0] = profile_of(&programs[0], "aa", &numbers);
		subjects[1] = profile_of(&programs[1], same_build ? "aa" : "bb", &numbers);
		check_pair(programs, subjects, same_build, variants[seed % ARRAY_SIZE(variants)],
			   seed);
		diff = compare(&subjects[0], &subjects[1], (struct diff_options){ 0 });
		paired += diff->sections[DIFF_PAIRED].n;
		diff__free(diff);
		/* Each cost with each variant, in turn. */
		options = variants[seed % ARRAY_SIZE(variants)];
		options.cost = seed / ARRAY_SIZE(variants) % COSTS;
		select_blocks(&subjects[0], &numbers);
		select_blocks(&subjects[1], &numbers);
		check_cost(subjects, options, seed);
		free_subject(&subjects[0]);
		free_subject(&subjects[1]);
	}
	/* Else nothing was tested. */
	assert_true(paired > PAIRS_OF_PROFILES);
}

static const struct diff_entry *first_of(const struct diff *diff, enum diff_section section)
{
	return &diff->entries[diff->sections[section].first];
}

static void assert_entry(const struct diff *diff, const struct diff_entry *entry,
			 enum diff_side side, const char *text, __s64 difference)
{
	char *got = entry_text(diff, entry, side);

	assert_non_null(got);
	if (strncmp(got, text, strlen(text)))
		fail_msg("expected %s..., got %s", text, got);
	assert_int_equal(entry->difference, difference);
	free(got);
}

static void test_story(void **state)
{
	struct subject before = view_of(diff_story__new(false, 1));
	struct subject after = view_of(diff_story__new(true, 1));
	struct diff *diff = compare(&before, &after, (struct diff_options){ 0 });
	const struct diff_entry *pairs = first_of(diff, DIFF_PAIRED);

	assert_int_equal(diff->sections[DIFF_ONLY_AFTER].n, 1);
	assert_entry(diff, first_of(diff, DIFF_ONLY_AFTER), DIFF_AFTER,
		     "malloc|operator new@libstdc++.so.6|add_trace@server|", 3000);
	assert_int_equal(diff->sections[DIFF_ONLY_BEFORE].n, 1);
	assert_entry(diff, first_of(diff, DIFF_ONLY_BEFORE), DIFF_BEFORE,
		     "calloc|load_config@server|", -5);
	assert_int_equal(diff->sections[DIFF_CHANGED].n, 1);
	assert_int_equal(diff->sections[DIFF_PAIRED].n, 2);
	assert_entry(diff, &pairs[0], DIFF_BEFORE, "malloc|parse_headers@server|", 0);
	assert_entry(diff, &pairs[0], DIFF_AFTER, "malloc|decode_headers@server|", 0);
	assert_entry(diff, &pairs[1], DIFF_BEFORE, "realloc|read_body@server|read_request@server|",
		     0);
	assert_entry(diff, &pairs[1], DIFF_AFTER, "realloc|read_body@server|handle_request@server|",
		     0);
	assert_int_equal(diff->profiles[DIFF_AFTER].total - diff->profiles[DIFF_BEFORE].total,
			 3000 + 10 - 5);
	diff__free(diff);
	diff = compare(&before, &after, (struct diff_options){ .cost = COST_TEMPORARY });
	assert_entry(diff, first_of(diff, DIFF_ONLY_AFTER), DIFF_AFTER, "malloc|operator new",
		     3000);
	assert_int_equal(diff->profiles[DIFF_BEFORE].total, 2000);
	assert_int_equal(diff->profiles[DIFF_AFTER].total, 5010);
	diff__free(diff);
	diff = compare(&before, &after, (struct diff_options){ .cost = COST_LIVE });
	assert_int_equal(diff->profiles[DIFF_BEFORE].total, 10);
	assert_int_equal(diff->profiles[DIFF_AFTER].total, 5);
	diff__free(diff);
	free_subject(&before);
	free_subject(&after);
}

/* Another version of the program, of another name: nothing else is new. */
static void test_renamed_file(void **state)
{
	struct profile *renamed = diff_story__new(true, 1);
	struct subject before = view_of(diff_story__new(false, 1)), after;
	struct diff *diff;

	free(renamed->modules[0].path);
	renamed->modules[0].path = strdup("/opt/new/server-2.0");
	after = view_of(renamed);
	diff = compare(&before, &after, (struct diff_options){ 0 });
	assert_int_equal(diff->sections[DIFF_ONLY_AFTER].n, 1);
	assert_int_equal(diff->sections[DIFF_PAIRED].n, 2);
	assert_int_equal(diff->sections[DIFF_ALIKE].n, 2);
	assert_entry(diff, first_of(diff, DIFF_CHANGED), DIFF_AFTER,
		     "malloc|respond@server|server-2.0|", 10);
	diff__free(diff);
	free_subject(&before);
	free_subject(&after);
}

/* Their names have nothing in common, but each is what its recording's command ran. */
static void test_other_program(void **state)
{
	struct profile *other = diff_story__new(true, 1);
	struct subject before = view_of(diff_story__new(false, 1)), after;
	struct diff *diff;

	free(other->modules[0].path);
	other->modules[0].path = strdup("/tmp/build/quick");
	after = view_of(other);
	diff = compare(&before, &after, (struct diff_options){ 0 });
	assert_int_equal(diff->sections[DIFF_ONLY_AFTER].n, 1);
	assert_int_equal(diff->sections[DIFF_PAIRED].n, 2);
	assert_int_equal(diff->sections[DIFF_ALIKE].n, 2);
	assert_entry(diff, first_of(diff, DIFF_CHANGED), DIFF_AFTER, "malloc|respond@quick|server|",
		     10);
	diff__free(diff);
	free_subject(&before);
	free_subject(&after);
}

/* A library on one side only is nobody's partner for its place in the stacks. */
static void test_library_is_no_program(void **state)
{
	struct profile *other = diff_story__new(true, 1);
	struct subject before = view_of(diff_story__new(false, 1)), after;
	struct diff *diff;

	free(other->modules[0].path);
	other->modules[0].path = strdup("/tmp/build/quick.so.1");
	after = view_of(other);
	diff = compare(&before, &after, (struct diff_options){ 0 });
	assert_int_equal(diff->sections[DIFF_ALIKE].n, 0);
	assert_int_equal(diff->sections[DIFF_CHANGED].n, 0);
	diff__free(diff);
	free_subject(&before);
	free_subject(&after);
}

static void test_runs(void **state)
{
	/* respond: 2000, 2001, 2002 in BEFORE; 2010, 2011, 2012, 2013 in AFTER. */
	struct subject before = view_of(diff_story__new(false, 3));
	struct subject after = view_of(diff_story__new(true, 4));
	struct subject one = view_of(diff_story__new(false, 1));
	struct diff *diff = compare(&before, &after, (struct diff_options){ 0 });
	const struct diff_entry *entry = first_of(diff, DIFF_CHANGED);
	struct diff_cost cost;

	assert_int_equal(diff->profiles[DIFF_BEFORE].n_runs, 3);
	assert_int_equal(diff->profiles[DIFF_AFTER].n_runs, 4);
	assert_int_equal(entry->difference, 10);
	assert_false(entry->is_noise);
	cost = diff_entry__cost(diff, entry, DIFF_AFTER);
	assert_int_equal(cost.median, 2011);
	assert_int_equal(cost.min, 2010);
	assert_int_equal(cost.max, 2013);
	diff__free(diff);

	diff = compare(&one, &before, (struct diff_options){ 0 });
	entry = first_of(diff, DIFF_CHANGED);
	assert_int_equal(entry->difference, 1);
	assert_true(entry->is_noise);
	diff__free(diff);
	free_subject(&one);
	free_subject(&before);
	free_subject(&after);
}

/* Two stacks, each in one run of three only: medians of 0, but for the total. */
static void test_medians_that_do_not_add_up(void **state)
{
	static const char *const names[] = { "a", "b", "c" };
	struct subject subjects[DIFF_SIDES];
	struct diff *diff;

	for (int side = 0; side < DIFF_SIDES; side++) {
		struct profile *profile = profile__new();
		__u32 id, count;

		for (__u32 run = 1; run <= 3; run++) {
			assert_int_equal(profile__add_process(profile, 0, run, 0, "c", &id), 0);
			profile->processes[id - 1].run = run;
			assert_int_equal(profile__add_thread(profile, id, "c", &id), 0);
			assert_int_equal(profile__add_frame(profile, 0, run, false, &id), 0);
			assert_int_equal(fixture__name_frame(profile, id, names[run - 1]), 0);
			assert_int_equal(profile__add_stack(profile, &id, 1, AP_END_COMPLETE, &id),
					 0);
			assert_int_equal(profile__add_count(profile, run, id, AP_MALLOC, 10 + side,
							    1, &count),
					 0);
		}
		subjects[side] = view_of(profile);
	}
	diff = compare(&subjects[0], &subjects[1], (struct diff_options){ 0 });
	assert_int_equal(diff->profiles[DIFF_BEFORE].total, 10);
	assert_int_equal(diff->between_runs[DIFF_BEFORE], 10);
	assert_int_equal(diff->between_runs[DIFF_AFTER], 11);
	assert_sums(diff, (const __u64[]){ 10, 11 }, 0);
	diff__free(diff);
	free_subject(&subjects[0]);
	free_subject(&subjects[1]);
}

/* A profile of one stack for each list of names, innermost first with commas between. */
static struct subject stacks_of(const char *const *stacks, const __u64 *calls, size_t n)
{
	struct profile *profile = profile__new();
	__u32 id, count;

	assert_int_equal(profile__add_module(profile, "/bin/app", "", &id), 0);
	assert_int_equal(profile__add_process(profile, 0, 1, 0, "app", &id), 0);
	assert_int_equal(profile__add_thread(profile, id, "app", &id), 0);
	for (size_t i = 0; i < n; i++) {
		__u32 frames[32], at = 0;
		char *text = strdup(stacks[i]), *rest = text, *name;

		while ((name = strsep(&rest, ","))) {
			assert_int_equal(profile__add_frame(profile, 1, profile->n_frames, false,
							    &frames[at]),
					 0);
			assert_int_equal(fixture__name_frame(profile, frames[at++], name), 0);
		}
		assert_int_equal(profile__add_stack(profile, frames, at, AP_END_COMPLETE, &id), 0);
		assert_int_equal(profile__add_count(profile, 1, id, AP_MALLOC, calls[i], 1, &count),
				 0);
		free(text);
	}
	return view_of(profile);
}

static void test_what_is_paired(void **state)
{
	static const struct {
		const char *before, *after;
		__u64 calls_before, calls_after;
		bool is_paired;
	} cases[] = {
		/* Renamed so that one sees it, at another cost; and not, at about the same. */
		{ "parse_header,serve,main", "parse_headers_v2,serve,main", 10, 99, true },
		{ "foo,serve,main", "bar,serve,main", 100, 91, true },
		{ "foo,serve,main", "bar,serve,main", 100, 89, false },
		/* Of many frames one, with a name that is gone and one that is new. */
		{ "foo,a,b,c,d,e,f,g,h,main", "bar,a,b,c,d,e,f,g,h,main", 10, 99, true },
		/* Inlined, and called by one function more. */
		{ "alloc,read,a,b,c,d,e,f,g,main", "alloc,a,b,c,d,e,f,g,main", 10, 99, true },
		{ "alloc,a,b,c,d,e,f,g,main", "alloc,read,a,b,c,d,e,f,g,main", 10, 99, true },
		{ "alloc,a,b,c,d,e,f,g,main", "alloc,Z,a,b,c,d,e,f,g,main", 10, 99, true },
		{ "alloc,read,main", "alloc,main", 10, 99, false },
		{ "alloc,read,main", "alloc,main", 10, 10, true },
		/* Two frames fewer, which both know. */
		{ "alloc,one,two,a,b,c,main", "alloc,a,b,c,main", 10, 10, true },
		/* What compilers add. */
		{ "f(int),serve,main", "f(int) [clone .isra.0],serve,main", 10, 99, true },
		{ "specialized Q<A>.pop(),serve,main", "Q<B>.pop(),serve,main", 10, 99, true },
		{ "f::h0123456789abcdef,serve,main", "f::hfedcba9876543210,serve,main", 1, 9,
		  true },
		/* Both know both functions: another call. */
		{ "one,a,b,c,d,e,f,g,h,main", "two,a,b,c,d,e,f,g,h,main", 10, 99, false },
		{ "one,a,b,c,d,e,f,g,h,main", "two,a,b,c,d,e,f,g,h,main", 10, 10, true },
		{ "a,b,c", "x,y,z", 10, 10, false },
	};
	static const char *const known = "one,two,alone";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const before[] = { cases[i].before, known };
		const char *const after[] = { cases[i].after, known };
		const __u64 calls_before[] = { cases[i].calls_before, 5 };
		const __u64 calls_after[] = { cases[i].calls_after, 5 };
		struct subject subjects[] = { stacks_of(before, calls_before, 2),
					      stacks_of(after, calls_after, 2) };
		struct diff *diff = compare(&subjects[0], &subjects[1], (struct diff_options){ 0 });

		if (diff->sections[DIFF_PAIRED].n != cases[i].is_paired)
			fail_msg("%s (%llu) and %s (%llu): %s", cases[i].before,
				 cases[i].calls_before, cases[i].after, cases[i].calls_after,
				 cases[i].is_paired ? "not paired" : "paired");
		diff__free(diff);
		free_subject(&subjects[0]);
		free_subject(&subjects[1]);
	}
}

/* The likelier partner gets it. */
static void test_best_pair(void **state)
{
	static const char *const before[] = { "parse_header,serve,main,start" };
	static const char *const after[] = { "decode_header,serve,main,start",
					     "add_tag,serve,main,start" };
	struct subject subjects[] = { stacks_of(before, (const __u64[]){ 10 }, 1),
				      stacks_of(after, (const __u64[]){ 10, 10 }, 2) };
	struct diff *diff = compare(&subjects[0], &subjects[1], (struct diff_options){ 0 });

	assert_int_equal(diff->sections[DIFF_PAIRED].n, 1);
	assert_entry(diff, first_of(diff, DIFF_PAIRED), DIFF_AFTER, "malloc|decode_header@app", 0);
	assert_entry(diff, first_of(diff, DIFF_ONLY_AFTER), DIFF_AFTER, "malloc|add_tag@app", 10);
	diff__free(diff);
	free_subject(&subjects[0]);
	free_subject(&subjects[1]);
}

#define MANY 200

/* All of them could be partners of all; only some are compared, from both sides the same. */
static void test_many_candidates(void **state)
{
	char names[DIFF_SIDES][MANY][32];
	const char *stacks[DIFF_SIDES][MANY];
	__u64 calls[MANY];
	struct subject subjects[DIFF_SIDES];

	for (int i = 0; i < MANY; i++) {
		for (int side = 0; side < DIFF_SIDES; side++) {
			snprintf(names[side][i], sizeof(names[side][i]), "%c%d%c,serve,main",
				 side ? 'a' + i % 26 : 'A' + i % 26, i, side ? 'x' : 'Y');
			stacks[side][i] = names[side][i];
		}
		calls[i] = 1000000 - 1000 * i;
	}
	/* Two are only in AFTER, and the most expensive. */
	subjects[DIFF_BEFORE] = stacks_of(stacks[DIFF_BEFORE] + 2, calls + 2, MANY - 2);
	subjects[DIFF_AFTER] = stacks_of(stacks[DIFF_AFTER], calls, MANY);
	for (int side = 0; side < DIFF_SIDES; side++) {
		struct diff *diff =
			compare(&subjects[side], &subjects[!side], (struct diff_options){ 0 });

		assert_int_equal(diff->sections[DIFF_PAIRED].n, MANY - 2);
		assert_int_equal(diff->sections[side ? DIFF_ONLY_BEFORE : DIFF_ONLY_AFTER].n, 2);
		assert_int_equal(diff__difference(diff->sections[DIFF_PAIRED].costs), 0);
		diff__free(diff);
	}
	free_subject(&subjects[DIFF_BEFORE]);
	free_subject(&subjects[DIFF_AFTER]);
}

static char *folded(const struct diff *diff)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_int_equal(diff_output__folded(diff, file), 0);
	fclose(file);
	return text;
}

static void test_folded(void **state)
{
	struct subject before = view_of(diff_story__new(false, 1));
	struct subject after = view_of(diff_story__new(true, 1));
	struct diff *diff = compare(&before, &after, (struct diff_options){ .min = 10000 });
	char *text = folded(diff), *line, *rest = text;
	__u64 sums[DIFF_SIDES] = { 0 };

	/* Whatever is not listed is there too. */
	while ((line = strsep(&rest, "\n")) && *line) {
		__u64 costs[DIFF_SIDES];

		assert_int_equal(sscanf(strchr(line, ' '), " %llu %llu", &costs[0], &costs[1]), 2);
		sums[0] += costs[0];
		sums[1] += costs[1];
	}
	assert_int_equal(sums[0], diff->profiles[DIFF_BEFORE].total);
	assert_int_equal(sums[1], diff->profiles[DIFF_AFTER].total);
	free(text);
	diff__free(diff);
	free_subject(&before);
	free_subject(&after);
}

static void test_no_live(void **state)
{
	static const char *const stack = "a,main";
	struct subject subject = stacks_of(&stack, (const __u64[]){ 1 }, 1);
	const struct diff_input inputs[DIFF_SIDES] = { { subject.profile, subject.view, NULL },
						       { subject.profile, subject.view, NULL } };
	const struct diff_options options = { .cost = COST_TEMPORARY };
	struct error error = { 0 };
	struct diff *diff;

	assert_int_equal(diff__new(inputs, &options, &diff, &error), -ENODATA);
	assert_non_null(strstr(error.text, "--live"));
	free_subject(&subject);
}

static void test_empty(void **state)
{
	struct subject subject = view_of(profile__new());
	struct diff *diff = compare(&subject, &subject, (struct diff_options){ 0 });
	char *text = folded(diff);

	assert_int_equal(diff->n_entries, 0);
	assert_string_equal(text, "");
	free(text);
	diff__free(diff);
	free_subject(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_story),
		cmocka_unit_test(test_renamed_file),
		cmocka_unit_test(test_other_program),
		cmocka_unit_test(test_library_is_no_program),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_medians_that_do_not_add_up),
		cmocka_unit_test(test_what_is_paired),
		cmocka_unit_test(test_best_pair),
		cmocka_unit_test(test_many_candidates),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_no_live),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
