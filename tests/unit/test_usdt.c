// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "debug_file.h"
#include "elf_file.h"
#include "error.h"
#include "function_code.h"
#include "usdt.h"

/* tests/unit/data/usdt.S. */
static int open_data(void)
{
	_cleanup_(free_ptr) char *path = NULL;
	const char *dir = getenv("ALLOCPROF_UNIT_DATA");
	int fd;

	if (!dir)
		fail_msg("ALLOCPROF_UNIT_DATA is not set; run: meson test -C build usdt");
	assert_true(asprintf(&path, "%s/unit_usdt.so", dir) > 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

struct seen {
	char names[1024];
	int n;
};

static int take_name(const struct usdt_probe *probe, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->names);

	snprintf(seen->names + len, sizeof(seen->names) - len, "%s:%s(%s)%s\n", probe->provider,
		 probe->name, probe->arguments, probe->semaphore ? "*" : "");
	return ++seen->n == 100;
}

/* What is damaged is left out, and ends nothing but its own section at the most. */
static void test_notes(void **state)
{
	struct debug_file file = DEBUG_FILE_NONE;
	struct seen seen = { .n = 0 };

	assert_int_equal(debug_file__open(open_data(), "usdt", &file, NULL), 0);
	assert_int_equal(usdt__for_each(file.elf, take_name, &seen), 0);
	assert_string_equal(seen.names, "app:begin()\napp:begin(-4@$1 8@%rax)\napp:waits()*\n"
					"app:data()\napp:no_nop()\napp:nowhere()\n"
					"app:no_semaphore()*\n:()\napp:last()\nother:begin()\n");
	seen.n = 99;
	assert_int_equal(usdt__for_each(file.elf, take_name, &seen), 1);
	debug_file__close(&file);
}

/* Every file that is cut off somewhere, or has a byte changed, is read without harm. */
static void test_damaged_files(void **state)
{
	char path[] = "/tmp/test_usdt.XXXXXX", bytes[65536];
	_cleanup_(close_fd) int data = open_data(), fd = mkstemp(path);
	ssize_t size = read(data, bytes, sizeof(bytes));

	assert_true(fd >= 0 && size > 0 && size < (ssize_t)sizeof(bytes));
	unlink(path);
	for (ssize_t at = 0; at < size; at += 7) {
		char kept = bytes[at];
		int cut = at % 3 == 0;
		struct debug_file file = DEBUG_FILE_NONE;
		struct seen seen = { .n = 0 };

		bytes[at] = ~bytes[at];
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_true(pwrite(fd, bytes, cut ? at : size, 0) >= 0);
		bytes[at] = kept;
		if (!debug_file__open(dup(fd), "usdt", &file, NULL)) {
			usdt__for_each(file.elf, take_name, &seen);
			debug_file__close(&file);
		}
	}
}

static int find_usdt(const char *name, struct function_code *code, struct error *error)
{
	_cleanup_(close_fd) int fd = open_data();

	memset(error, 0, sizeof(*error));
	return function_code__find_usdt(fd, "usdt.so", name, code, error);
}

static int find(const char *name, struct function_code *code, struct error *error)
{
	_cleanup_(close_fd) int fd = open_data();

	memset(error, 0, sizeof(*error));
	return function_code__find(fd, "usdt.so", name, code, error);
}

static void test_probes(void **state)
{
	struct function_code code, other;
	struct error error;

	assert_int_equal(find_usdt("app:begin", &code, &error), 0);
	assert_int_equal(code.n_entries, 2);
	assert_int_equal(code.entries[0], code.entries[1]);
	assert_int_equal(code.semaphores[0], 0);
	assert_int_equal(find_usdt("app:waits", &other, &error), 0);
	assert_int_equal(other.n_entries, 1);
	assert_int_equal(other.entries[0], code.entries[0]);
	assert_true(other.semaphores[0] != 0 && other.semaphores[0] != code.entries[0]);
}

/* A breakpoint is set in code only, where a nop is; a counter only where the file has one. */
static void test_refused_probes(void **state)
{
	static const char *const damaged[] = { "app:data", "app:no_nop", "app:nowhere",
					       "app:no_semaphore" };
	struct function_code code;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		assert_int_equal(find_usdt(damaged[i], &code, &error), -ENOENT);
		assert_non_null(strstr(error.text, "damaged"));
	}
	assert_int_equal(find_usdt("app:bgin", &code, &error), -ENOENT);
	assert_non_null(strstr(error.text, "no USDT probe app:bgin in usdt.so; it has app:begin"));
	assert_int_equal(find_usdt("app:behind", &code, &error), -ENOENT);
}

static void test_functions(void **state)
{
	struct function_code code, twice;
	struct error error;
	char address[32];

	assert_int_equal(find("work", &code, &error), 0);
	/* With what was split off, where no call begins; behind the push stands what is probed. */
	assert_int_equal(code.within.n, 3);
	assert_int_equal(code.n_entries, 1);
	assert_int_equal(find("ns::twice(int)", &code, &error), 0);
	assert_int_equal(find("_ZN2ns5twiceEi", &twice, &error), 0);
	assert_int_equal(code.n_entries, 1);
	assert_int_equal(code.entries[0], twice.entries[0]);
	assert_int_equal(code.within.ranges[0].size, 2);
	assert_int_equal(find("ns::twice(long)", &twice, &error), 0);
	assert_int_not_equal(code.entries[0], twice.entries[0]);

	assert_int_equal(find("ns::twice", &code, &error), -ENOTUNIQ);
	assert_non_null(strstr(error.text, "ns::twice(int) at 0x"));
	assert_non_null(strstr(error.text, "ns::twice(long) at 0x"));
	assert_int_equal(
		sscanf(strstr(error.text, "(long) at "), "(long) at %31[0-9a-fx]", address), 1);
	assert_int_equal(find(address, &code, &error), 0);
	assert_int_equal(code.entries[0], twice.entries[0]);

	assert_int_equal(find("wrok", &code, &error), -ENOENT);
	assert_non_null(strstr(error.text, "similar names: work"));
	assert_int_equal(find("0x1", &code, &error), -ENOENT);
	assert_int_equal(find("", &code, &error), -ENOENT);
}

static void test_no_file(void **state)
{
	_cleanup_(close_fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(function_code__find(fd, "null", "main", &code, &error), -ENOEXEC);
	assert_int_equal(function_code__find_usdt(fd, "null", "a:b", &code, &error), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes),	  cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_probes),	  cmocka_unit_test(test_refused_probes),
		cmocka_unit_test(test_functions), cmocka_unit_test(test_no_file),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
