// SPDX-License-Identifier: GPL-3.0-or-later
/* A text is what the file has, up to a length, and ends with a null; what is read whole is all there, or an error. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file.h"
#include "unit.h"

#define MOST 100000

static void assert_reads(int fd, const char *expected, size_t expected_bytes)
{
	char *text;
	size_t size_bytes;

	assert_int_equal(text_file__read(fd, MOST, &text, &size_bytes), 0);
	assert_int_equal(size_bytes, expected_bytes);
	assert_memory_equal(text, expected, expected_bytes);
	assert_int_equal(text[size_bytes], 0);
	free(text);
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, MOST - 1, MOST, MOST + 1 };
	char *bytes = malloc(MOST + 1);

	for (size_t i = 0; i <= MOST; i++)
		bytes[i] = (char)(i * 7 + i / 256);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int fd = memfd_create("text", MFD_CLOEXEC);
		size_t expected = sizes[i] < MOST ? sizes[i] : MOST;

		assert_int_equal(write(fd, bytes, sizes[i]), sizes[i]);
		/* Where the last reader stopped does not matter. */
		assert_reads(fd, bytes, expected);
		assert_reads(fd, bytes, expected);
		close(fd);
	}
	free(bytes);
}

static void test_pipe(void **state)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "by parts", 8), 8);
	close(ends[1]);
	assert_reads(ends[0], "by parts", 8);
	close(ends[0]);
}

static void test_error(void **state)
{
	char *text = (char *)state;
	size_t size_bytes = 7;
	int fd = open("/", O_RDONLY | O_CLOEXEC);

	assert_int_equal(text_file__read(fd, MOST, &text, &size_bytes), -EISDIR);
	assert_ptr_equal(text, state);
	assert_int_equal(size_bytes, 7);
	close(fd);
}

static void test_whole(void **state)
{
	int fd = memfd_create("whole", MFD_CLOEXEC), ends[2];
	char bytes[8];

	assert_int_equal(fd__write_all(fd, "whole", 5), 0);
	assert_int_equal(fd__write_all_at(fd, "H", 1, 1), 0);
	assert_int_equal(fd__read_all_at(fd, bytes, 4, 1), 0);
	assert_memory_equal(bytes, "Hole", 4);
	assert_int_equal(fd__read_all_at(fd, bytes, 4, 2), -ENODATA);
	assert_int_equal(fd__read_all_at(fd, bytes, 4, 5), -ENODATA);
	assert_int_equal(fd__read_all_at(fd, bytes, 0, 5), 0);
	assert_int_equal(fd__read_all_at(fd, bytes, 4, UINT64_MAX), -EINVAL);
	assert_int_equal(fd__read_all_at(-1, bytes, 4, 0), -EBADF);
	close(fd);

	/* A packet a read(2). */
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_DIRECT), 0);
	for (const char *part = "parts"; *part; part++)
		assert_int_equal(write(ends[1], part, 1), 1);
	close(ends[1]);
	assert_int_equal(fd__read_all(ends[0], bytes, 4), 0);
	assert_memory_equal(bytes, "part", 4);
	assert_int_equal(fd__read_all(ends[0], bytes, 4), -ENODATA);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
