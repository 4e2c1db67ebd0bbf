// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "demangle_internal.h"
#include "demangle_names.h"

static struct demangler *new_demangler(void)
{
	struct demangler *demangler;

	assert_int_equal(demangler__new(&(struct demangle_options){ 0 }, &demangler, NULL), 0);
	return demangler;
}

static void test_real_names(void **state)
{
	struct demangler *demangler = new_demangler();

	for (size_t i = 0; i < ARRAY_SIZE(real_names); i++) {
		char *name, *full_name;

		assert_int_equal(
			demangler__names(demangler, real_names[i].symbol, &name, &full_name), 0);
		if (strcmp(name, real_names[i].name))
			fail_msg("%s\n which is %s\n should be  %s\n but was    %s",
				 real_names[i].symbol, full_name, real_names[i].name, name);
		assert_true(strlen(name) <= strlen(full_name));
		free(name);
		free(full_name);
	}
	demangler__free(demangler);
}

struct text {
	const char *full, *simple;
};

static const struct text cxx_texts[] = {
	{ "main", "main" },
	{ "foo(int)", "foo" },
	{ "foo() [clone .isra.0] [clone .cold]", "foo" },
	{ "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()" },
	{ "main()::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()" },
	{ "A::f(int) const volatile &&::{lambda()#2}::operator()() const &",
	  "A::f::{lambda()#2}::operator()" },
	{ "void foo<int>()::{lambda()#1}::operator()() const",
	  "foo<int>::{lambda()#1}::operator()" },
	{ "std::vector<int, std::allocator<int> > foo<int>(int)::X::y()", "foo<int>::X::y" },
	{ "void (anonymous namespace)::foo<int>()", "(anonymous namespace)::foo<int>" },
	{ "void (*foo<int>(int))(char)", "foo<int>" },
	{ "int (&foo<(E)1>()) [3]", "foo<(E)1>" },
	{ "decltype (((x)+(y))) add<int, long>(int, long)", "add<int, long>" },
	{ "A::operator unsigned long() const", "A::operator unsigned long" },
	{ "A::operator void (*)(int)() const", "A::operator void (*)(int)" },
	{ "A::operator std::vector<int, std::allocator<int> > const&()",
	  "A::operator std::vector<int> const&" },
	{ "operator new[](unsigned long, std::nothrow_t const&)", "operator new[]" },
	{ "A::operator delete(void*)", "A::operator delete" },
	{ "operator\"\" _km(long double)", "operator\"\" _km" },
	{ "operator<(A, B)", "operator<" },
	{ "operator< <int>(A<int>, B)", "operator< <int>" },
	{ "operator<<(A, B)", "operator<<" },
	{ "operator<< <int>(A<int>, B)", "operator<< <int>" },
	{ "operator<=> <int>(A<int>, B)", "operator<=> <int>" },
	{ "operator-><int>(A)", "operator-><int>" },
	{ "A::operator->*(int)", "A::operator->*" },
	{ "A::operator,(int)", "A::operator," },
	{ "A::operator()<std::vector<int, std::allocator<int> > >(int)",
	  "A::operator()<std::vector<int>>" },
	{ "B<&A::operator> >::f()", "B<&A::operator> >::f" },
	{ "operators::operatorless(int)", "operators::operatorless" },
	{ "A<((8ul)>(4ul)), ((1)<(2))>::f(int)", "A<((8ul)>(4ul)), ((1)<(2))>::f" },
	{ "std::function<void (int, std::vector<int, std::allocator<int> >)>::operator()(int) const",
	  "std::function<void (int, std::vector<int>)>::operator()" },
	{ "X<foo(int)::Local>::f()", "X<foo::Local>::f" },
	{ "std::map<int, A*, std::less<int>, std::allocator<std::pair<int const, A*> > >::find(int)",
	  "std::map<int, A*>::find" },
	{ "std::map<int, A, Other, std::allocator<std::pair<int const, A> > >::find(int)",
	  "std::map<int, A, Other>::find" },
	{ "std::map<int, A, std::less<int>, Mine>::find(int)",
	  "std::map<int, A, std::less<int>, Mine>::find" },
	{ "std::vector<int, Mine<int> >::size() const", "std::vector<int, Mine<int>>::size" },
	{ "my::vector<int, std::allocator<int> >::size()",
	  "my::vector<int, std::allocator<int>>::size" },
	{ "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >::"
	  "append(char const*)",
	  "std::string::append" },
	{ "std::__1::map<int, std::__1::basic_string<wchar_t, std::__1::char_traits<wchar_t>, "
	  "std::__1::allocator<wchar_t> >, std::__1::less<int>, std::__1::allocator<"
	  "std::__1::pair<int const, std::__1::basic_string<wchar_t, std::__1::char_traits<wchar_t>, "
	  "std::__1::allocator<wchar_t> > > > >::f()",
	  "std::map<int, std::wstring>::f" },
	{ "std::__ndk1::vector<int, std::__ndk1::allocator<int> >::f()", "std::vector<int>::f" },
	{ "absl::lts_20220623::Mutex::Lock()", "absl::Mutex::Lock" },
	{ "__1::f()", "__1::f" },
	{ "f[abi:cxx11][abi:v2](int)", "f" },
	{ "vtable for std::basic_ostream<char, std::char_traits<char> >",
	  "vtable for std::ostream" },
	{ "non-virtual thunk to A::f(int)", "non-virtual thunk to A::f" },
	{ "foo<int>(int) requires (C<int>)", "foo<int>" },
	{ "nlohmann::basic_json<std::map, std::vector, std::__cxx11::basic_string<char, "
	  "std::char_traits<char>, std::allocator<char> >, bool, long, unsigned long, double, "
	  "std::allocator, nlohmann::adl_serializer, std::vector<unsigned char, "
	  "std::allocator<unsigned char> > >::dump(int)",
	  "nlohmann::json::dump" },
	/* GCC's way in debug information. */
	{ "std::_Function_handler<void(int), main(int, char**)::<lambda(int, char)> >::_M_invoke",
	  "std::_Function_handler<void(int), main::<lambda(int, char)>>::_M_invoke" },
	{ "A<B::<unnamed struct> >::f", "A<B::<unnamed struct>>::f" },
	{ "A<B::<lambda(int)", "A<B::<lambda(int)" },
	/* What makes no sense stays. */
	{ "", "" },
	{ "(", "(" },
	{ "a<", "a<" },
	{ "a<b(c>)", "a<b(c>)" },
	{ "foo(int", "foo(int" },
	{ "foo) bar", "foo) bar" },
	{ "x[abi:", "x[abi:" },
	{ "foo(int) what", "foo(int) what" },
	{ "(int)", "(int)" },
};

static const struct text d_texts[] = {
	{ "D main", "D main" },
	{ "demangle.test(int[]...)", "demangle.test" },
	{ "demangle.fnA().fnB()", "demangle.fnA.fnB" },
	{ "object.Foo.bar(int) const", "object.Foo.bar" },
	{ "object.Foo.bar(int) const.inner(char)", "object.Foo.bar.inner" },
	{ "std.stdio.writeln!(immutable(char)[]).writeln(immutable(char)[])",
	  "std.stdio.writeln!(immutable(char)[]).writeln" },
	{ "a.f!(\")(\").f(int)", "a.f!(\")(\").f" },
	{ "a.f!(\").f(int)", "a.f!(\").f(int)" },
	{ "a.f(int", "a.f(int" },
	{ "()", "()" },
	{ "", "" },
};

static void check(const struct text *texts, size_t n, char *(*simplify)(const char *))
{
	for (size_t i = 0; i < n; i++) {
		char *simple = simplify(texts[i].full);

		assert_string_equal(simple, texts[i].simple);
		free(simple);
	}
}

static void test_cxx_texts(void **state)
{
	check(cxx_texts, ARRAY_SIZE(cxx_texts), demangle_simple__cxx);
}

static void test_d_texts(void **state)
{
	check(d_texts, ARRAY_SIZE(d_texts), demangle_simple__d);
}

static unsigned int next_random(unsigned int *random)
{
	*random = *random * 1103515245 + 12345;
	return *random >> 8;
}

/* Replaces, drops, doubles or inserts what the parsers look at. */
static void mutate(char *text, size_t size, unsigned int *random)
{
	static const char *const pieces[] = {
		"<",
		"> ",
		">",
		"(",
		")",
		"[",
		"]",
		"{",
		"}",
		",",
		", ",
		" ",
		"::",
		"operator",
		"!",
		"\"",
		"[abi:",
		"__cxx11::",
		"\\",
		"*",
		"~",
		" [clone ",
		" const",
		"operator ",
		"(anonymous namespace)",
		"std::vector<",
		"std::basic_string<char",
		"\xff",
	};
	const char *piece = pieces[next_random(random) % ARRAY_SIZE(pieces)];
	size_t len = strlen(text), at = next_random(random) % (len + 1);
	size_t dropped = next_random(random) % 4, added = strlen(piece);

	if (dropped > len - at)
		dropped = len - at;
	if (len - dropped + added >= size)
		added = 0;
	memmove(text + at + added, text + at + dropped, len - at - dropped + 1);
	memcpy(text + at, piece, added);
}

static void check_bounds(char *(*simplify)(const char *), const char *full)
{
	char *simple = simplify(full);

	assert_non_null(simple);
	if (strlen(simple) > strlen(full))
		fail_msg("longer than what it stands for:\n%s\n%s", simple, full);
	free(simple);
}

/* Whatever the text, its short form is no longer. Run under ASan it finds more. */
static void test_mutated_texts(void **state)
{
	struct demangler *demangler = new_demangler();
	unsigned int random = 1;

	for (size_t i = 0; i < ARRAY_SIZE(real_names); i++) {
		char *name, *full_name, text[4096];

		assert_int_equal(
			demangler__names(demangler, real_names[i].symbol, &name, &full_name), 0);
		for (int round = 0; round < 200; round++) {
			strncpy(text, full_name, sizeof(text) - 1);
			text[sizeof(text) - 1] = '\0';
			for (int n = round % 8; n >= 0; n--)
				mutate(text, sizeof(text), &random);
			check_bounds(demangle_simple__cxx, text);
			check_bounds(demangle_simple__d, text);
		}
		free(name);
		free(full_name);
	}
	demangler__free(demangler);
}

static void test_depth_is_limited(void **state)
{
	static const char openings[] = "<([{";
	const size_t size = 1 << 20;
	char *text = malloc(size);

	for (size_t i = 0; i < strlen(openings); i++) {
		for (size_t at = 0; at < size - 1; at += 2) {
			text[at] = 'a';
			text[at + 1] = openings[i];
		}
		text[size - 1] = '\0';
		check_bounds(demangle_simple__cxx, text);
		check_bounds(demangle_simple__d, text);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_names),	 cmocka_unit_test(test_cxx_texts),
		cmocka_unit_test(test_d_texts),		 cmocka_unit_test(test_mutated_texts),
		cmocka_unit_test(test_depth_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
