// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "demangle.h"
#include "error.h"

static struct demangler *new_demangler(const char *command)
{
	struct demangler *demangler;
	struct demangle_options options = { .command = command };

	assert_int_equal(demangler__new(&options, &demangler, NULL), 0);
	return demangler;
}

static void assert_names(const struct demangler *demangler, const char *symbol, const char *wanted,
			 const char *wanted_full)
{
	char *name, *full_name;

	assert_int_equal(demangler__names(demangler, symbol, &name, &full_name), 0);
	assert_string_equal(name, wanted);
	assert_string_equal(full_name, wanted_full);
	free(name);
	free(full_name);
}

static void test_both_forms(void **state)
{
	static const struct {
		const char *symbol, *name, *full_name;
	} cases[] = {
		{ "main", "main", "main" },
		{ "_Znwm", "operator new", "operator new(unsigned long)" },
		{ "_Z3fooIiEvT_", "foo<int>", "foo<int>(int)" },
		{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write",
		  "core::fmt::write" },
		{ "_ZN3foo3barE.llvm.1234567890", "foo::bar", "foo::bar" },
		{ "_ZN4core3fmt5write17h0123456789abcdefE.llvm.ABC123", "core::fmt::write",
		  "core::fmt::write" },
		{ "_RNvC6_123foo3bar", "123foo::bar", "123foo::bar" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo" },
		{ "memcpy@@GLIBC_2.14", "memcpy", "memcpy" },
		{ "_ZNSaIcED1Ev@GLIBCXX_3.4", "std::allocator<char>::~allocator",
		  "std::allocator<char>::~allocator()" },
		{ "_Zbroken", "_Zbroken", "_Zbroken" },
		{ "@", "@", "@" },
		{ "", "", "" },
		{ "_Z3foov.cold", "foo", "foo() [clone .cold]" },
		{ "_Z3foov.isra.0.constprop.2.cold", "foo",
		  "foo() [clone .isra.0.constprop.2.cold]" },
		{ "_Z3foov.localalias", "foo", "foo() [clone .localalias]" },
		{ "_Z3foov.clone.3.lto_priv.0", "foo", "foo() [clone .clone.3.lto_priv.0]" },
		{ "parse.part.0", "parse", "parse.part.0" },
		{ "parse.cold", "parse", "parse.cold" },
		{ "inner.1234", "inner.1234", "inner.1234" },
		{ ".cold", ".cold", ".cold" },
		{ "$stdin", "$stdin", "$stdin" },
		{ "std::vector<int, std::allocator<int> >::size", "std::vector<int>::size",
		  "std::vector<int, std::allocator<int> >::size" },
		{ "A<std::vector<int, std::allocator<int> > >::operator()",
		  "A<std::vector<int>>::operator()",
		  "A<std::vector<int, std::allocator<int> > >::operator()" },
		/* Whoever wrote parameters has demangled it. */
		{ "std::map<int, a b>::insert(int, char*)",
		  "std::map<int, a b>::insert(int, char*)",
		  "std::map<int, a b>::insert(int, char*)" },
		{ "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<T> as core::ops::Drop>::drop" },
	};
	struct demangler *demangler = new_demangler(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_names(demangler, cases[i].symbol, cases[i].name, cases[i].full_name);
	demangler__free(demangler);
}

/* Parameters of which each is a pair of the one before it twice. */
static char *doubling_symbol(int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *symbol = malloc(1024), *to = stpcpy(symbol, "_Z1fSt4pairIiiE");

	for (int i = 0; i < n; i++)
		to += sprintf(to, "S_IS%c_S%c_E", digits[i], digits[i]);
	return symbol;
}

static void test_names_are_bounded(void **state)
{
	struct demangler *demangler = new_demangler(NULL);
	char *shorter = doubling_symbol(3), *longer = doubling_symbol(34);
	char *name, *full_name;

	assert_int_equal(demangler__names(demangler, shorter, &name, &full_name), 0);
	assert_string_equal(name, "f");
	assert_non_null(strstr(full_name, "std::pair<std::pair<int, int>, std::pair<int, int> >"));
	free(name);
	free(full_name);
	/* 2^34 times "std::pair" would be 150 GB. */
	assert_names(demangler, longer, longer, longer);
	free(shorter);
	free(longer);
	demangler__free(demangler);
}

static char *repeat(const char *begin, const char *unit, size_t n)
{
	char *text = malloc(strlen(begin) + n * strlen(unit) + 1), *to = stpcpy(text, begin);

	while (n--)
		to = stpcpy(to, unit);
	return text;
}

static void test_d(void **state)
{
	static const struct {
		const char *symbol, *name, *full_name;
	} cases[] = {
		{ "_Dmain", "D main", "D main" },
		{ "_D8demangle4testFAiXv", "demangle.test", "demangle.test(int[]...)" },
		{ "_D8demangle4test6__ctorMFZv", "demangle.test.this", "demangle.test.this()" },
		{ "_D8demangle3fnAFZ3fnBMFZv", "demangle.fnA.fnB", "demangle.fnA().fnB()" },
		{ "_D8demangle4testMxFZv", "demangle.test", "demangle.test() const" },
		{ "_D8demangle4testFZv.cold", "demangle.test", "demangle.test() [clone .cold]" },
		{ "_D1", "_D1", "_D1" },
	};
	struct demangler *demangler = new_demangler(NULL);
	/* Each level is tried twice, so that this takes 2^200 steps. */
	char *endless = repeat("_D1aF", "C1aF", 200);
	/* A stack overflow, if nothing else. */
	char *deep = repeat("_D1aF", "P", 8000);

	/* Without demangler__run() they stay. */
	assert_names(demangler, cases[0].symbol, cases[0].symbol, cases[0].symbol);
	assert_int_equal(demangler__add(demangler, endless), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(demangler__add(demangler, cases[i].symbol), 0);
	assert_int_equal(demangler__add(demangler, deep), 0);
	assert_int_equal(demangler__add(demangler, deep), 0);
	assert_int_equal(demangler__run(demangler, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_names(demangler, cases[i].symbol, cases[i].name, cases[i].full_name);
	assert_names(demangler, endless, endless, endless);
	free(endless);
	free(deep);
	demangler__free(demangler);
}

static void test_looks_mangled(void **state)
{
	static const char *const mangled[] = { "_Znwm",	      "_RNv1a",	  "$s4main3fooyyF",
					       "_$s4main",    "_T04main", "@__swiftmacro_1a",
					       "_D4main3foo", "__ZN3foo", "_TtC4main" };
	static const char *const plain[] = { "",      "main",	"_Z",	"_R",	"_",   "_start",
					     "_Dfoo", "memcpy", "$a.1", "Zone", "T0_x" };

	for (size_t i = 0; i < ARRAY_SIZE(mangled); i++) {
		if (!demangle__looks_mangled(mangled[i]))
			fail_msg("%s looks mangled", mangled[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		if (demangle__looks_mangled(plain[i]))
			fail_msg("%s does not look mangled", plain[i]);
	}
}

static void add_some(struct demangler *demangler, int n)
{
	for (int i = 0; i < n; i++) {
		char symbol[64];

		snprintf(symbol, sizeof(symbol), "__Zname%d", i);
		assert_int_equal(demangler__add(demangler, symbol), 0);
	}
}

/* More than fits into the pipes, through a filter that holds its output back and one that does not. */
static void test_filter(void **state)
{
	static const char *const commands[] = {
		"sed 's/^__Z\\(.*\\)/\\1 of a filter/'",
		"sed -u 's/^__Z\\(.*\\)/\\1 of a filter/'",
		"sed 's/^__Z\\(.*\\)/\\1 of a filter/' | cat",
		/* The last line may lack its end. */
		"sed 's/^__Z\\(.*\\)/\\1 of a filter/' | head -c -1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct demangler *demangler = new_demangler(commands[i]);
		struct error error = { 0 };

		assert_int_equal(demangler__add(demangler, "__Za\nb"), 0);
		assert_int_equal(demangler__add(demangler, "_Znwm"), 0);
		assert_int_equal(demangler__add(demangler, "main"), 0);
		add_some(demangler, 20000);
		if (demangler__run(demangler, &error))
			fail_msg("%s: %s", commands[i], error.text);
		assert_names(demangler, "__Zname0", "name0 of a filter", "name0 of a filter");
		assert_names(demangler, "__Zname19999", "name19999 of a filter",
			     "name19999 of a filter");
		assert_names(demangler, "_Znwm", "operator new", "operator new(unsigned long)");
		assert_names(demangler, "main", "main", "main");
		assert_names(demangler, "__Za\nb", "__Za\nb", "__Za\nb");
		/* What comes later runs alone. */
		assert_int_equal(demangler__add(demangler, "__Zlater"), 0);
		assert_int_equal(demangler__run(demangler, &error), 0);
		assert_names(demangler, "__Zlater", "later of a filter", "later of a filter");
		assert_names(demangler, "__Zname0", "name0 of a filter", "name0 of a filter");
		demangler__free(demangler);
	}
}

static void test_filters_that_fail(void **state)
{
	static const struct {
		const char *command;
		int err;
		const char *text;
	} cases[] = {
		{ "exit 3", -ECHILD, "ended with status 3" },
		{ "kill -SEGV $$", -ECHILD, "killed by signal 11" },
		{ "/nowhere/at/all 2>/dev/null", -ECHILD, "ended with status 127" },
		{ "true", -EPROTO, "printed 0" },
		{ "head -n 10", -EPROTO, "printed 10" },
		{ "cat; echo more", -EPROTO, "read 20000 lines and printed 20001" },
		{ "yes", -EMSGSIZE, "printed more than" },
		{ "tr '\\n' x < /dev/zero", -EMSGSIZE, "printed more than" },
		{ "sleep 1000", -ETIMEDOUT, "did not end within 300 ms" },
		{ "cat >/dev/null; exec >&-; sleep 1000", -ETIMEDOUT, "did not end within 300 ms" },
		{ "cat; sleep 1000 & exit 1", -ETIMEDOUT, "did not end within 300 ms" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool is_slow = cases[i].err == -ETIMEDOUT;
		struct demangle_options options = { .command = cases[i].command,
						    .timeout_ms = is_slow ? 300 : 0 };
		struct error error = { 0 };
		struct demangler *demangler;
		int err;

		assert_int_equal(demangler__new(&options, &demangler, NULL), 0);
		add_some(demangler, 20000);
		err = demangler__run(demangler, &error);
		if (err != cases[i].err || !strstr(error.text, cases[i].text))
			fail_msg("`%s`: expected %d and \"%s\", got %d and \"%s\"",
				 cases[i].command, cases[i].err, cases[i].text, err, error.text);
		assert_non_null(strstr(error.text, "names stay as they are linked"));
		assert_names(demangler, "__Zname0", "__Zname0", "__Zname0");
		/* It is not tried again. */
		assert_int_equal(demangler__run(demangler, &error), 0);
		demangler__free(demangler);
	}
	/* Neither is left behind, nor has a closed pipe left its signal. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* Lines of nothing, too long ones and ones with NULs name nothing that they should not. */
static void test_odd_answers(void **state)
{
	struct demangler *demangler = new_demangler(
		"cat >/dev/null; echo; head -c 8192 /dev/zero | tr '\\0' x; echo; printf 'a\\0b\\n'");

	add_some(demangler, 3);
	assert_int_equal(demangler__run(demangler, NULL), 0);
	assert_names(demangler, "__Zname0", "__Zname0", "__Zname0");
	assert_names(demangler, "__Zname1", "__Zname1", "__Zname1");
	assert_names(demangler, "__Zname2", "a", "a");
	demangler__free(demangler);
}

static void test_command_must_be_one(void **state)
{
	struct error error = { 0 };
	struct demangler *demangler = NULL;

	assert_int_equal(
		demangler__new(&(struct demangle_options){ .command = " " }, &demangler, &error),
		-EINVAL);
	assert_null(demangler);
	assert_non_null(strstr(error.text, "empty"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_forms),  cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_d),	    cmocka_unit_test(test_looks_mangled),
		cmocka_unit_test(test_filter),	    cmocka_unit_test(test_filters_that_fail),
		cmocka_unit_test(test_odd_answers), cmocka_unit_test(test_command_must_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
