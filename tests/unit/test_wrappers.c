// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "wrappers.h"

static struct wrappers *load(const char *path)
{
	struct error error = { 0 };
	struct wrappers *wrappers;

	if (wrappers__load(path, &wrappers, &error))
		fail_msg("%s", error.text);
	return wrappers;
}

static void write_file(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void test_built_in(void **state)
{
	static const char *const hidden[] = {
		"operator new",
		"operator new[]",
		"std::allocator<int>::allocate",
		"std::__new_allocator<std::pair<int const, std::string>>::allocate",
		"std::_Vector_base<int>::_M_allocate",
		"std::string::_M_create",
		"swift_allocObject",
		"swift_slowAlloc",
		"__rust_alloc",
		"__rustc::__rdl_alloc",
		"alloc::alloc::exchange_malloc",
		"<alloc::alloc::Global as core::alloc::Allocator>::allocate",
		"alloc::raw_vec::RawVec<T,A>::reserve::do_reserve_and_handle",
		"<alloc::raw_vec::RawVecInner>::finish_grow",
		"alloc::raw_vec::finish_grow",
		"std::sys::unix::alloc::<impl GlobalAlloc for std::alloc::System>::alloc",
		"<std::alloc::System as core::alloc::global::GlobalAlloc>::alloc_zeroed",
		"g_malloc0",
		"xmalloc",
		"PyMem_RawMalloc",
		"sqlite3MemMalloc",
		"jv_mem_alloc",
	};
	static const char *const shown[] = {
		"",
		"main",
		"operator new_",
		"operator delete",
		"std::vector<int>::push_back",
		"std::vector<int>::_M_realloc_insert<int>",
		"std::make_shared<int>",
		"my::allocator<int>::allocate",
		"alloc::vec::Vec<T,A>::push",
		"strdup",
		"__cxa_allocate_exception",
		"# C++",
	};
	struct wrappers *wrappers = load(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		if (!wrappers__hides(wrappers, hidden[i], "/bin/app") ||
		    !wrappers__hides(wrappers, hidden[i], NULL))
			fail_msg("%s is a wrapper", hidden[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		if (wrappers__hides(wrappers, shown[i], "/bin/app"))
			fail_msg("%s is no wrapper", shown[i]);
	}
	wrappers__free(wrappers);
}

static void test_libraries(void **state)
{
	static const char *const folded[] = {
		"std::vector<int>::push_back",
		"std::__detail::_Hashtable<*>",
		"__gnu_cxx::new_allocator<int>::allocate",
		"__cxxabiv1::__cxa_vec_new",
		"alloc::fmt::format",
		"core::iter::traits::iterator::Iterator::collect",
		"<alloc::string::String as core::fmt::Write>::write_str",
		"<&T as core::fmt::Display>::fmt",
		"std::collections::hash::map::HashMap<K,V,S>::entry",
	};
	static const char *const kept[] = {
		"main",		"my::std::vector", "stdx::f",
		"operator new", "core::run",	   "<app::Point as core::fmt::Display>::fmt",
	};
	struct wrappers *wrappers = load(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(folded); i++)
		if (!wrappers__folds(wrappers, folded[i], NULL))
			fail_msg("%s is a library's", folded[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (wrappers__folds(wrappers, kept[i], "/bin/app"))
			fail_msg("%s is no library's", kept[i]);
	wrappers__free(wrappers);
}

static void test_users_lists(void **state)
{
	static const char own[] = "  my_alloc*\t\r\n\n # comment\n!xmalloc\n@libc.so* strdup\n"
				  "@lib*.so.1\toperator delete[]\n*_end";
	static const char extra[] = "xmalloc\n!@bad.so my_alloc_*\n**a**b**\n~boost::*\n"
				    "!~std::thread*\n!~std::allocator<*\n~@libQt* Q*";
	char dir[] = "/tmp/allocprof-test.XXXXXX", own_path[64], extra_path[64];
	struct wrappers *wrappers;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	snprintf(own_path, sizeof(own_path), "%s/allocprof", dir);
	assert_int_equal(mkdir(own_path, 0700), 0);
	snprintf(own_path, sizeof(own_path), "%s/allocprof/wrappers", dir);
	snprintf(extra_path, sizeof(extra_path), "%s/extra", dir);
	write_file(own_path, own, strlen(own));
	write_file(extra_path, extra, strlen(extra));

	wrappers = load(NULL);
	assert_true(wrappers__hides(wrappers, "my_alloc", NULL));
	assert_true(wrappers__hides(wrappers, "my_alloc_more", "/lib/bad.so"));
	assert_false(wrappers__hides(wrappers, "xmalloc", NULL));
	assert_true(wrappers__hides(wrappers, "xcalloc", NULL));
	assert_true(wrappers__hides(wrappers, "strdup", "/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(wrappers__hides(wrappers, "strdup", "libc.so"));
	assert_false(wrappers__hides(wrappers, "strdup", "/libc.so/app"));
	assert_false(wrappers__hides(wrappers, "strdup", NULL));
	assert_true(wrappers__hides(wrappers, "operator delete[]", "/lib/libfoo.so.1"));
	assert_true(wrappers__hides(wrappers, "the_end", NULL));
	assert_false(wrappers__hides(wrappers, "the_end_", NULL));
	wrappers__free(wrappers);

	wrappers = load(extra_path);
	assert_true(wrappers__hides(wrappers, "xmalloc", NULL));
	assert_false(wrappers__hides(wrappers, "my_alloc_more", "/lib/bad.so"));
	assert_true(wrappers__hides(wrappers, "my_alloc_more", "/lib/good.so"));
	assert_true(wrappers__hides(wrappers, "xaxbx", NULL));
	assert_true(wrappers__hides(wrappers, "ab", NULL));
	assert_false(wrappers__hides(wrappers, "ba", NULL));
	assert_true(wrappers__folds(wrappers, "boost::pool<>::malloc", NULL));
	assert_false(wrappers__hides(wrappers, "boost::pool<>::malloc", NULL));
	assert_false(wrappers__folds(wrappers, "std::thread::thread", NULL));
	/* A line of one kind does not take back lines of the other. */
	assert_false(wrappers__folds(wrappers, "std::allocator<int>::allocate", NULL));
	assert_true(wrappers__hides(wrappers, "std::allocator<int>::allocate", NULL));
	assert_true(wrappers__folds(wrappers, "QList::append", "/lib/libQt5Core.so.5"));
	assert_false(wrappers__folds(wrappers, "QList::append", "/bin/app"));
	wrappers__free(wrappers);

	unlink(own_path);
	unlink(extra_path);
	*strrchr(own_path, '/') = '\0';
	rmdir(own_path);
	rmdir(dir);
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
}

static void test_bad_lists(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *wanted;
	} cases[] = {
		{ "good\n@libc.so.6\n", -EINVAL, "line 2 of" },
		{ "!\n", -EINVAL, "line 1 of" },
		{ "@ name\n", -EINVAL, "line 1 of" },
		{ "!@libc.so.6 \n", -EINVAL, "line 1 of" },
	};
	char path[] = "/tmp/allocprof-test.XXXXXX";
	char *large = malloc((1 << 20) + 1);
	struct wrappers *wrappers = NULL;
	struct error error;

	close(mkstemp(path));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_file(path, cases[i].text, strlen(cases[i].text));
		assert_int_equal(wrappers__load(path, &wrappers, &error), cases[i].err);
		assert_non_null(strstr(error.text, cases[i].wanted));
	}
	memset(large, '\n', (1 << 20) + 1);
	write_file(path, large, (1 << 20) + 1);
	assert_int_equal(wrappers__load(path, &wrappers, &error), -EFBIG);
	write_file(path, large, 1 << 20);
	assert_int_equal(wrappers__load(path, &wrappers, &error), 0);
	wrappers__free(wrappers);
	free(large);
	wrappers = NULL;
	unlink(path);
	assert_int_equal(wrappers__load(path, &wrappers, &error), -ENOENT);
	assert_int_equal(wrappers__load("/", &wrappers, &error), -EISDIR);
	assert_null(wrappers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_built_in),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_users_lists),
		cmocka_unit_test(test_bad_lists),
	};

	/* Nobody's own list. */
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
