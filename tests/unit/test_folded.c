// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "folded.h"
#include "stack_view.h"

struct variant {
	struct stack_view_options view;
	struct folded_options fold;
};

static char *fold(const struct profile *profile, struct variant variant)
{
	struct stack_view *view;
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_int_equal(stack_view__new(profile, &variant.view, &view), 0);
	assert_int_equal(folded__write(profile, view, &variant.fold, file), 0);
	fclose(file);
	stack_view__free(view);
	return text;
}

static __u64 sum(const char *text)
{
	__u64 total = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *space = strchr(line, ' ');

		total += strtoull(space, NULL, 10);
	}
	return total;
}

static void test_sums(void **state)
{
	struct profile *profile = fixture__new();
	const struct variant variants[] = { { .fold = { 0 } },
					    { .view.addresses = true },
					    { .fold.no_comm = true },
					    { .fold.by_thread = true },
					    { .fold = { .no_comm = true, .by_thread = true } } };

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		struct variant variant = variants[i];
		char *text = fold(profile, variant);

		/* 9 of the 42 attributed calls are free's, and one got no memory. */
		assert_int_equal(sum(text), 42 - 9 - 1);
		free(text);
		variant.fold.cost = COST_BYTES;
		text = fold(profile, variant);
		assert_int_equal(sum(text), 900 + 500 + 7777 + 64 + 300 + 4096 + 8);
		free(text);
	}
	profile__free(profile);
}

static void test_order_is_bytewise(void **state)
{
	static const char *const names[] = { "a",      "a!", "a;", "a<",      "ab",
					     "malloc", "~",  "A",  "\xc3\xa9" };
	struct profile *profile = profile__new();
	char *text, *line, *next, *previous = NULL;
	__u32 id, count, frames[2];

	assert_int_equal(profile__add_process(profile, 0, 1, 0, "c", &id), 0);
	assert_int_equal(profile__add_thread(profile, 1, "c", &id), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(profile__add_frame(profile, 0, i, false, &id), 0);
		assert_int_equal(fixture__name_frame(profile, id, names[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (size_t j = 0; j <= ARRAY_SIZE(names); j++) {
			frames[0] = j;
			frames[1] = i + 1;
			assert_int_equal(profile__add_stack(profile, j ? frames : frames + 1,
							    j ? 2 : 1, AP_END_COMPLETE, &id),
					 0);
			assert_int_equal(
				profile__add_count(profile, 1, id, AP_MALLOC, 1, 1, &count), 0);
			assert_int_equal(
				profile__add_count(profile, 1, id, AP_CALLOC, 1, 1, &count), 0);
		}
	}
	text = fold(profile, (struct variant){ .fold = { 0 } });
	assert_int_equal(sum(text), 2 * 9 * 10);
	for (line = text; *line; line = next) {
		next = strchr(line, '\n');
		*next++ = '\0';
		if (previous)
			assert_true(strcmp(previous, line) < 0);
		previous = line;
	}
	free(text);
	profile__free(profile);
}

static void test_names_are_safe(void **state)
{
	static const struct {
		const char *name, *line;
	} cases[] = {
		{ "operator new(unsigned long)", "operator_new(unsigned_long);malloc 1\n" },
		{ "f(int, char)", "f(int,char);malloc 1\n" },
		{ "a;b", "a:b;malloc 1\n" },
		{ "a\n\t b", "a___b;malloc 1\n" },
		{ "\x1b[31m\x7f", "?[31m?;malloc 1\n" },
		{ "\xff\xc3", "??;malloc 1\n" },
		{ "\xc2\x9b", "??;malloc 1\n" },
		{ "\xe2\x82\xac", "\xe2\x82\xac;malloc 1\n" },
		{ " ", "_;malloc 1\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *profile = profile__new();
		__u32 id, count;
		char *text;

		profile__add_process(profile, 0, 1, 0, "c", &id);
		profile__add_thread(profile, 1, "c", &id);
		profile__add_frame(profile, 0, 1, false, &id);
		fixture__name_frame(profile, id, cases[i].name);
		profile__add_stack(profile, &id, 1, AP_END_COMPLETE, &id);
		profile__add_count(profile, 1, id, AP_MALLOC, 1, 1, &count);
		text = fold(profile, (struct variant){ .fold.no_comm = true });
		assert_string_equal(text, cases[i].line);
		free(text);
		profile__free(profile);
	}
}

/* What is inlined is marked as flamegraph.pl has it, and roots are as asked for. */
static void test_roots_and_marks(void **state)
{
	struct profile *profile = profile__new();
	struct profile_line lines[2] = { { .line = 3, .inlined = true }, { .line = 8 } };
	__u32 frame, id;
	char *text;

	profile__add_process(profile, 0, 1, 0, "app", &id);
	profile__add_thread(profile, 1, "worker 1", &id);
	profile__add_thread(profile, 1, "worker 2", &id);
	profile__add_frame(profile, 0, 1, false, &frame);
	profile__add_function(profile, "inner", "inner", "inner", &lines[0].function);
	profile__add_function(profile, "_Z5outerv", "outer", "outer()", &lines[1].function);
	profile__add_file(profile, "/src/my file.c", &lines[0].file);
	lines[1].file = lines[0].file;
	assert_int_equal(profile__set_frame_lines(profile, frame, lines, 2), 0);
	profile__add_stack(profile, &frame, 1, AP_END_COMPLETE, &id);
	profile__add_count(profile, 1, 1, AP_MALLOC, 1, 1, &id);
	profile__add_count(profile, 2, 1, AP_MALLOC, 2, 2, &id);
	text = fold(profile, (struct variant){ .fold = { 0 } });
	assert_string_equal(text, "app;outer;inner_[i];malloc 3\n");
	free(text);
	text = fold(profile,
		    (struct variant){ .view.names = STACK_NAMES_FULL, .fold.by_thread = true });
	assert_string_equal(text, "app;worker_1;outer();inner_[i];malloc 1\n"
				  "app;worker_2;outer();inner_[i];malloc 2\n");
	free(text);
	text = fold(profile, (struct variant){ .view.lines = true,
					       .fold = { .by_thread = true, .no_comm = true } });
	assert_string_equal(text,
			    "worker_1;outer_(my_file.c:8);inner_(my_file.c:3)_[i];malloc 1\n"
			    "worker_2;outer_(my_file.c:8);inner_(my_file.c:3)_[i];malloc 2\n");
	free(text);
	profile__free(profile);
}

static void test_full_device(void **state)
{
	struct profile *profile = fixture__new();
	FILE *file = fopen("/dev/full", "w");
	struct stack_view *view;

	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &view), 0);
	assert_int_equal(folded__write(profile, view, &(struct folded_options){ 0 }, file),
			 -ENOSPC);
	stack_view__free(view);
	fclose(file);
	profile__free(profile);
}

static void test_empty(void **state)
{
	struct profile *profile = profile__new();
	char *text = fold(profile, (struct variant){ .fold = { 0 } });

	assert_string_equal(text, "");
	free(text);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),	       cmocka_unit_test(test_order_is_bytewise),
		cmocka_unit_test(test_names_are_safe), cmocka_unit_test(test_full_device),
		cmocka_unit_test(test_empty),	       cmocka_unit_test(test_roots_and_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
