// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "stack_view.h"
#include "wrappers.h"

/* Frames, by id, of one function each but the second. */
enum {
	OPERATOR_NEW = 1,
	PUSH_BACK, /* allocate() and _M_realloc_insert() inlined into push_back() */
	MAIN,
	MAIN_ELSEWHERE,
	NO_NAME,
	NO_FILE,
	XMALLOC,
	MAIN_OF_LIBRARY,
	EMPTY_NAME,
};

static struct profile_line line_of(struct profile *profile, const char *symbol, const char *name,
				   const char *full_name, __u32 number)
{
	struct profile_line line = { .line = number };

	profile__add_function(profile, symbol, name, full_name, &line.function);
	return line;
}

static void add_frame(struct profile *profile, __u32 module, struct profile_line line)
{
	__u32 id;

	profile__add_frame(profile, module, 0x1000 + profile->n_frames, false, &id);
	if (line.function)
		assert_int_equal(profile__set_frame_lines(profile, id, &line, 1), 0);
}

static struct profile *make_profile(void)
{
	struct profile *profile = profile__new();
	struct profile_line lines[3];
	__u32 id, file;

	profile__add_module(profile, "/bin/app", "", &id);
	profile__add_module(profile, "/lib/libfoo.so.1", "", &id);
	profile__add_file(profile, "/src/app/main.cc", &file);
	add_frame(profile, 2,
		  line_of(profile, "_Znwm", "operator new", "operator new(unsigned long)", 0));
	lines[0] = line_of(profile, "a", "std::allocator<int>::allocate",
			   "std::allocator<int>::allocate(unsigned long)", 1);
	lines[1] = line_of(profile, "b", "std::vector<int>::_M_realloc_insert",
			   "std::vector<int, std::allocator<int> >::_M_realloc_insert()", 2);
	lines[2] = line_of(profile, "c", "std::vector<int>::push_back",
			   "std::vector<int, std::allocator<int> >::push_back(int)", 3);
	lines[0].inlined = lines[1].inlined = true;
	lines[2].file = file;
	add_frame(profile, 1, (struct profile_line){ 0 });
	assert_int_equal(profile__set_frame_lines(profile, PUSH_BACK, lines, 3), 0);
	lines[0] = line_of(profile, "main", "main", "main", 10);
	lines[0].file = file;
	add_frame(profile, 1, lines[0]);
	lines[0].line = 0;
	add_frame(profile, 1, lines[0]);
	add_frame(profile, 2, (struct profile_line){ 0 });
	add_frame(profile, 0, (struct profile_line){ 0 });
	add_frame(profile, 1, line_of(profile, "xmalloc", "xmalloc", "xmalloc", 0));
	add_frame(profile, 2, line_of(profile, "main", "main", "main", 0));
	add_frame(profile, 2, line_of(profile, "", "", "", 0));
	return profile;
}

static __u32 add_stack(struct profile *profile, const __u32 *frames, size_t n)
{
	__u32 id;

	assert_int_equal(profile__add_stack(profile, frames, n, AP_END_COMPLETE, &id), 0);
	return id;
}

/* All that is printed for a stack, innermost first, with " | " between, and "*" where inlined. */
static void assert_view(const struct profile *profile, __u32 stack,
			struct stack_view_options options, const char *wanted)
{
	char text[1024] = "", *to = text;
	struct stack_view *view;
	const __u32 *frames;
	size_t n;

	assert_int_equal(stack_view__new(profile, &options, &view), 0);
	frames = stack_view__frames(view, stack, &n);
	for (size_t i = 0; i < n; i++) {
		const struct stack_label *label = &view->labels[frames[i]];

		to += sprintf(to, "%s%s%s", i ? " | " : "", label->text, label->inlined ? "*" : "");
	}
	assert_string_equal(text, wanted);
	stack_view__free(view);
}

static void test_forms(void **state)
{
	static const __u32 frames[] = { OPERATOR_NEW, PUSH_BACK, MAIN, NO_NAME, NO_FILE };
	struct profile *profile = make_profile();
	__u32 stack = add_stack(profile, frames, ARRAY_SIZE(frames));
	__u32 others = add_stack(profile, (const __u32[]){ MAIN_ELSEWHERE, EMPTY_NAME }, 2);
	__u32 nothing = add_stack(profile, NULL, 0);

	assert_view(profile, stack, (struct stack_view_options){ 0 },
		    "operator new | std::allocator<int>::allocate* | "
		    "std::vector<int>::_M_realloc_insert* | std::vector<int>::push_back | main | "
		    "[libfoo.so.1+0x1004] | [unknown]");
	assert_view(profile, stack,
		    (struct stack_view_options){ .names = STACK_NAMES_FULL, .no_inline = true },
		    "operator new(unsigned long) | "
		    "std::vector<int, std::allocator<int> >::push_back(int) | main | "
		    "[libfoo.so.1+0x1004] | [unknown]");
	assert_view(profile, stack,
		    (struct stack_view_options){ .names = STACK_NAMES_LINKED, .lines = true },
		    "_Znwm | a* | b* | c (main.cc:3) | main (main.cc:10) | [libfoo.so.1+0x1004] | "
		    "[unknown]");
	assert_view(
		profile, stack, (struct stack_view_options){ .addresses = true, .lines = true },
		"libfoo.so.1+0x1000 | app+0x1001 | app+0x1002 | libfoo.so.1+0x1004 | [unknown]");
	assert_view(profile, others, (struct stack_view_options){ .lines = true },
		    "main (main.cc) | [libfoo.so.1+0x1008]");
	assert_view(profile, nothing, (struct stack_view_options){ 0 }, "");
	profile__free(profile);
}

static void test_wrappers_are_left_out(void **state)
{
	static const struct {
		__u32 frames[5];
		size_t n;
		const char *wanted;
	} cases[] = {
		{ { OPERATOR_NEW, PUSH_BACK, MAIN }, 3, "std::vector<int>::push_back | main" },
		{ { OPERATOR_NEW, MAIN }, 2, "main" },
		/* Only the innermost ones in a row. */
		{ { MAIN, OPERATOR_NEW, MAIN }, 3, "main | operator new | main" },
		{ { XMALLOC, NO_NAME, XMALLOC }, 3, "[libfoo.so.1+0x1004] | xmalloc" },
		/* One stays. */
		{ { OPERATOR_NEW, XMALLOC }, 2, "xmalloc" },
		{ { XMALLOC }, 1, "xmalloc" },
		{ { 0 }, 0, "" },
		/* Of a library's functions the one that was called, wherever the row is. */
		{ { PUSH_BACK, MAIN, PUSH_BACK, PUSH_BACK, MAIN },
		  5,
		  "std::vector<int>::push_back | main | std::vector<int>::push_back | main" },
		{ { MAIN, NO_NAME, PUSH_BACK },
		  3,
		  "main | [libfoo.so.1+0x1004] | std::vector<int>::push_back" },
		{ { PUSH_BACK }, 1, "std::vector<int>::push_back" },
	};
	struct profile *profile = make_profile();
	struct wrappers *wrappers;

	assert_int_equal(wrappers__load(NULL, &wrappers, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		__u32 stack = add_stack(profile, cases[i].frames, cases[i].n);

		assert_view(profile, stack, (struct stack_view_options){ .wrappers = wrappers },
			    cases[i].wanted);
	}
	/* Names in another form, and none at all, change nothing about which they are. */
	assert_view(
		profile, 1,
		(struct stack_view_options){ .wrappers = wrappers, .names = STACK_NAMES_LINKED },
		"c | main");
	assert_view(profile, 1,
		    (struct stack_view_options){ .wrappers = wrappers, .all_frames = true },
		    "operator new | std::allocator<int>::allocate* | "
		    "std::vector<int>::_M_realloc_insert* | std::vector<int>::push_back | main");
	assert_view(profile, 1,
		    (struct stack_view_options){ .wrappers = wrappers, .no_inline = true },
		    "std::vector<int>::push_back | main");
	assert_view(profile, 2,
		    (struct stack_view_options){ .wrappers = wrappers, .addresses = true },
		    "app+0x1002");
	wrappers__free(wrappers);
	profile__free(profile);
}

/* What looks alike is one label, but not in two files. */
static void test_labels_are_distinct(void **state)
{
	struct profile *profile = make_profile();
	struct stack_view *view;
	const __u32 *frames;
	size_t n;

	add_stack(profile, (const __u32[]){ MAIN, MAIN_ELSEWHERE, MAIN_OF_LIBRARY }, 3);
	assert_int_equal(stack_view__new(profile, &(struct stack_view_options){ 0 }, &view), 0);
	frames = stack_view__frames(view, 1, &n);
	assert_int_equal(n, 3);
	assert_int_equal(frames[0], frames[1]);
	assert_int_not_equal(frames[0], frames[2]);
	assert_int_equal(view->labels[frames[0]].module, 1);
	assert_int_equal(view->labels[frames[2]].module, 2);
	assert_string_equal(profile->functions[view->labels[frames[0]].function - 1].name, "main");
	stack_view__free(view);
	profile__free(profile);
}

/* The compilers of V8 make one function several times; a regular expression is none. */
static void test_tiers(void **state)
{
	static const char *const symbols[] = { "JS:~f /app.js:6:21",  "JS:^f /app.js:6:21",
					       "JS:*'f /app.js:6:21", "JS:f /app.js:6:21",
					       "RegExp:^a",	      "JS:~" };
	static const char *const printed[] = { "JS:f /app.js:6:21", "JS:f /app.js:6:21",
					       "JS:f /app.js:6:21", "JS:f /app.js:6:21",
					       "RegExp:^a",	    "JS:" };
	struct profile *profile = profile__new();

	for (__u32 i = 0; i < ARRAY_SIZE(symbols); i++) {
		__u32 frame = i + 1, stack;

		add_frame(profile, 0, line_of(profile, symbols[i], symbols[i], symbols[i], 0));
		stack = add_stack(profile, &frame, 1);
		assert_view(profile, stack, (struct stack_view_options){ 0 }, printed[i]);
		assert_view(profile, stack,
			    (struct stack_view_options){ .names = STACK_NAMES_FULL }, printed[i]);
		assert_view(profile, stack, (struct stack_view_options){ .all_frames = true },
			    symbols[i]);
		assert_view(profile, stack,
			    (struct stack_view_options){ .names = STACK_NAMES_LINKED }, symbols[i]);
	}
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_wrappers_are_left_out),
		cmocka_unit_test(test_labels_are_distinct),
	};

	/* Nobody's own list. */
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
