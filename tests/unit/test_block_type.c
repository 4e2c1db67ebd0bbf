// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "block_type.h"
#include "profile.h"

#define MOST_FUNCTIONS 6

struct case_ {
	const char *type;		       /* NULL: the stack does not say */
	const char *functions[MOST_FUNCTIONS]; /* the innermost first */
	bool has_no_lines;		       /* there is no debug information */
	const char *module;		       /* NULL: /home/me/app */
	bool is_swift;			       /* all but swift_ functions have names of Swift's */
};

static __u32 add_frame(struct profile *profile, const struct case_ *of, const char *name, __u32 i)
{
	bool is_swift = of->is_swift && strncmp(name, "swift_", 6) != 0;
	struct profile_line line = { .line = 1 };
	__u32 module, frame;

	assert_int_equal(profile__add_module(profile, of->module ?: "/home/me/app", "", &module),
			 0);
	assert_int_equal(profile__add_frame(profile, module, 0x1000 + i, false, &frame), 0);
	assert_int_equal(profile__add_function(profile, is_swift ? "$s1a" : name, name, name,
					       &line.function),
			 0);
	if (!of->has_no_lines)
		assert_int_equal(profile__add_file(profile, "/src/a.cc", &line.file), 0);
	assert_int_equal(profile__set_frame_lines(profile, frame, &line, 1), 0);
	return frame;
}

static void check(const struct case_ *of)
{
	struct profile *profile = profile__new();
	struct block_types *types;
	__u32 frames[MOST_FUNCTIONS], n = 0, stack;
	const char *type = "none was stored";

	for (; n < MOST_FUNCTIONS && of->functions[n]; n++)
		frames[n] = add_frame(profile, of, of->functions[n], n);
	assert_int_equal(profile__add_stack(profile, frames, n, AP_END_COMPLETE, &stack), 0);
	types = block_types__new(profile);
	assert_non_null(types);
	/* The second answer is of what was remembered. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(block_types__of_stack(types, &profile->stacks[stack - 1], &type),
				 0);
		if (of->type ? !type || strcmp(type, of->type) != 0 : !!type)
			fail_msg("%s: expected %s, got %s", of->functions[0], of->type ?: "none",
				 type ?: "none");
	}
	block_types__free(types);
	profile__free(profile);
}

static void test_types(void **state)
{
	static const struct case_ cases[] = {
		{ "std::vector<int>",
		  { "std::__new_allocator<int>::allocate", "std::vector<int>::push_back",
		    "main" } },
		/* The outermost container decides, as long as it keeps its contents in the inner one. */
		{ "std::map<Key, Session>",
		  { "std::_Rb_tree<Key, std::pair<Key const, Session> >::_M_insert_",
		    "std::map<Key, Session>::operator[]", "main" } },
		{ "std::string",
		  { "std::string::_M_create", "std::vector<std::string>::push_back", "main" } },
		{ "Session", { "std::make_shared<Session, int>", "main" } },
		{ "std::pair<int, std::vector<char>>",
		  { "std::make_unique<std::pair<int, std::vector<char>>>", "main" } },
		{ "alloc::vec::Vec<u8>",
		  { "__rust_alloc", "<alloc::vec::Vec<u8> as core::clone::Clone>::clone",
		    "app::main" } },
		{ "std::function<int()>", { "std::function<int ()>::function", "main" } },
		/* A function of the program, or one of a library that calls the program, ends the search. */
		{ NULL, { "main", "std::vector<int>::push_back" } },
		{ NULL,
		  { "<alloc::vec::Vec<u8> as app::Digest>::sum",
		    "alloc::vec::Vec<u8>::with_capacity" } },
		{ NULL, { "std::function<void ()>::operator()", "std::vector<int>::push_back" } },
		/* Parameters' names are no types. */
		{ NULL, { "alloc::vec::Vec<T,A>::reserve", "app::main" } },
		/* Code of the program may be inlined, unseen, where there is no debug information. */
		{ NULL, { "std::vector<int>::push_back", "main" }, .has_no_lines = true },
		{ "std::string", { "std::string::_M_create", "main" }, .has_no_lines = true },
		{ "std::vector<int>",
		  { "std::vector<int>::push_back" },
		  .has_no_lines = true,
		  .module = "/usr/lib/libstdc++.so.6" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&cases[i]);
}

#define ARRAY_INIT                                                                                 \
	"Swift._ContiguousArrayBuffer.init(_uninitializedCount: Swift.Int, minimumCapacity: Swift.Int) -> Swift._ContiguousArrayBuffer<A>"

/* A class is that of the initializer that called swift_allocObject, and of no other function. */
static void test_types_of_swift(void **state)
{
	static const struct {
		const char *type, *caller;
	} callers[] = {
		{ "app.Node", "app.Node.__allocating_init(Swift.String) -> app.Node" },
		{ "app.Outer.Node", "app.Outer.Node.__allocating_init() throws -> app.Outer.Node" },
		{ "app.Node",
		  "function signature specialization <Arg[0] = Dead> of app.Node.__allocating_init(() -> ()) -> app.Node" },
		{ "app.Node", "app.(Node in _0A1B).__allocating_init() -> app.(Node in _0A1B)" },
		{ "Node", "specialized Node.__allocating_init(_:)" },
		{ "app.Box<Swift.Int>",
		  "generic specialization <Swift.Int> of app.Box.__allocating_init(A) -> app.Box<A>" },
		{ "app.Box<() -> Swift.Int>",
		  "generic specialization <() -> Swift.Int> of app.Box.__allocating_init(A) -> app.Box<A>?" },
		{ "app.Pair<[Swift.Int : app.Key], Swift.Int>",
		  "generic specialization <serialized, [Swift.Int : app.Key], Swift.Int> of app.Pair.__allocating_init(A, B) -> app.Pair<A, B>" },
		{ "Swift._ContiguousArrayStorage<(Swift.Int, Swift.String)>",
		  "generic specialization <(Swift.Int, Swift.String)> of " ARRAY_INIT },
		/* The arguments of a generic class are unknown. */
		{ NULL, "app.Box.__allocating_init(A) -> app.Box<A>" },
		{ NULL,
		  "generic specialization <Swift.Int> of app.Pair.__allocating_init(A, B) -> app.Pair<A, B>" },
		{ NULL,
		  "generic specialization <Swift.Int> of app.Outer.Box.__allocating_init() -> app.Outer<A>.Box<B>" },
		{ NULL,
		  "generic specialization <[A]> of app.Box.__allocating_init(A) -> app.Box<A>" },
		{ NULL, ARRAY_INIT },
		/* Others than the initializer itself. */
		{ NULL, "closure #1 () -> () in app.Node.__allocating_init() -> app.Node" },
		{ NULL, "default argument 0 of app.Node.__allocating_init(Swift.Int) -> app.Node" },
		{ NULL, "merged app.Node.__allocating_init() -> app.Node" },
		{ NULL,
		  "generic partial specialization <Signature = <A>> of app.Box.__allocating_init(A) -> app.Box<A>" },
		{ NULL, "app.Node.init(Swift.String) -> app.Node" },
		{ NULL,
		  "Node #1 in app.make() -> ().__allocating_init() -> Node #1 in app.make() -> ()" },
		{ NULL,
		  "generic specialization <Swift.Int of app.Box.__allocating_init(A) -> app.Box<A>" },
		{ NULL, "app.Node.__allocating_init(" },
		{ NULL, ".__allocating_init()" },
	};
	static const struct case_ cases[] = {
		{ "app.Node",
		  { "swift_slowAlloc", "swift_allocObject",
		    "app.Node.__allocating_init() -> app.Node",
		    "app.List.__allocating_init() -> app.List", "main" } },
		/* A box, and memory that the program asks for itself. */
		{ NULL,
		  { "swift_allocObject", "swift_allocBox",
		    "app.Node.__allocating_init() -> app.Node" } },
		{ NULL, { "app.Node.__allocating_init() -> app.Node" } },
		/* Other blocks of the initializer may be those of code that is inlined, unseen. */
		{ NULL,
		  { "swift_allocObject", "app.Node.__allocating_init() -> app.Node" },
		  .has_no_lines = true },
		{ "Swift._ContiguousArrayStorage<app.Key>",
		  { "swift_allocObject", "generic specialization <app.Key> of " ARRAY_INIT },
		  .has_no_lines = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		struct case_ of = { callers[i].type,
				    { "swift_slowAlloc", "swift_allocObject", callers[i].caller,
				      "main" },
				    .is_swift = true };

		check(&of);
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct case_ of = cases[i];

		of.is_swift = true;
		check(&of);
	}
	/* C++ may have a function of such a name. */
	check(&(struct case_){ NULL, { "swift_allocObject", "Node.__allocating_init(_:)" } });
}

/* Names that end too early, and brackets that are none. */
static void test_strange_names(void **state)
{
	static const char *const names[] = {
		"",
		"<",
		"<<<<",
		">>::",
		"::::",
		"std::vector<",
		"std::vector<int>::",
		"std::make_shared<",
		"std::make_shared<>",
		"operator<",
		"std::operator<< <char>",
		"< as >::f",
		"<alloc::vec::Vec<u8> as ",
		"std::map<a->b, (c>::insert",
		"std::vector<int>::operator",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct profile *profile = profile__new();
		const struct case_ of = { 0 };
		__u32 frame = add_frame(profile, &of, names[i], 0), stack;
		const char *type = NULL;
		struct block_types *types;

		assert_int_equal(profile__add_stack(profile, &frame, 1, AP_END_COMPLETE, &stack),
				 0);
		types = block_types__new(profile);
		assert_int_equal(block_types__of_stack(types, &profile->stacks[stack - 1], &type),
				 0);
		/* It is a part of the name. */
		assert_true(!type || strstr(names[i], type));
		block_types__free(types);
		profile__free(profile);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_types_of_swift),
		cmocka_unit_test(test_strange_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
