// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "mapped_file.h"
#include "process_maps.h"

#define PARENT 10
#define CHILD  11

static void add(struct process_maps *maps, __u32 pid, const char *path, __u64 start, __u64 end,
		__u64 time_ns)
{
	struct code_mapping mapping = {
		.start = start,
		.end = end,
		.identity.inode = path[1], /* of "/a" and the like, one each */
		.time_ns = time_ns,
		.path = (char *)path,
	};

	assert_int_equal(process_maps__add(maps, pid, &mapping), 0);
}

static const char *at(const struct process_maps *maps, __u32 pid, __u64 address, __u64 time_ns)
{
	const struct code_mapping *mapping = process_maps__find(maps, pid, address, time_ns);

	return mapping ? mapping->path : "";
}

static void append(const struct code_mapping *mapping, void *context)
{
	strcat(context, mapping->path);
}

/* All that is mapped at @time_ns, as the unwinder is told. */
static const char *all(const struct process_maps *maps, __u32 pid, __u64 time_ns)
{
	static char paths[64];

	paths[0] = '\0';
	process_maps__for_each(maps, pid, time_ns, append, paths);
	return paths;
}

static void test_order(void **state)
{
	/* Each of the six orders in which three events may be told. */
	static const char orders[][4] = { "123", "132", "213", "231", "312", "321" };

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		struct process_maps *maps = process_maps__new();

		for (const char *next = orders[i]; *next; next++) {
			if (*next == '1')
				add(maps, PARENT, "/a", 0x1000, 0x3000, 10);
			else if (*next == '2')
				add(maps, PARENT, "/b", 0x1000, 0x2000, 20);
			else
				add(maps, PARENT, "/c", 0x1000, 0x3000, 30);
		}
		assert_string_equal(at(maps, PARENT, 0x1000, 9), "");
		assert_string_equal(at(maps, PARENT, 0x1000, 10), "/a");
		assert_string_equal(at(maps, PARENT, 0x1000, 29), "/b");
		assert_string_equal(at(maps, PARENT, 0x2000, 29), "/a");
		assert_string_equal(at(maps, PARENT, 0x3000, 29), "");
		assert_string_equal(at(maps, PARENT, 0x1000, 30), "/c");
		assert_string_equal(at(maps, CHILD, 0x1000, 30), "");
		assert_string_equal(all(maps, PARENT, 10), "/a");
		assert_string_equal(all(maps, PARENT, 20), "/b"); /* /a is overlapped: gone */
		assert_string_equal(all(maps, PARENT, 30), "/c");
		process_maps__free(maps);
	}
}

static void append_with_end(const struct code_mapping *mapping, void *context)
{
	char *text = context;

	sprintf(text + strlen(text), "%s to %llx, ", mapping->path, mapping->end);
}

/* The kernel maps the first segment of an ELF file with the room of all, and others come into the holes between them. */
static void test_hole(void **state)
{
	struct process_maps *maps = process_maps__new();
	char text[64] = "";

	add(maps, PARENT, "/a", 0x10000, 0x52000, 10);
	add(maps, PARENT, "//anon", 0x48000, 0x4a000, 11);
	add(maps, PARENT, "/b", 0x38000, 0x3a000, 12);
	process_maps__for_each(maps, PARENT, 12, append_with_end, text);
	assert_string_equal(text, "/a to 38000, /b to 3a000, ");
	assert_string_equal(at(maps, PARENT, 0x37fff, 12), "/a");
	assert_string_equal(at(maps, PARENT, 0x49000, 12), "");
	process_maps__free(maps);
}

static void test_version(void **state)
{
	struct process_maps *maps = process_maps__new();
	__u64 before;

	add(maps, PARENT, "/b", 0x1000, 0x2000, 20);
	before = process_maps__version(maps, PARENT, 25);
	assert_int_equal(process_maps__version(maps, PARENT, 100), before);
	add(maps, PARENT, "/c", 0x4000, 0x5000, 30);
	assert_int_equal(process_maps__version(maps, PARENT, 25), before);
	assert_int_not_equal(process_maps__version(maps, PARENT, 30), before);

	/* One that is told late: there is one at 15 now, which is not the one that was at 25. */
	add(maps, PARENT, "/a", 0x8000, 0x9000, 10);
	assert_int_not_equal(process_maps__version(maps, PARENT, 25), before);
	assert_int_not_equal(process_maps__version(maps, PARENT, 15), before);

	/* What is no file, and overlaps none, is of no matter. */
	before = process_maps__version(maps, PARENT, 30);
	add(maps, PARENT, "//anon", 0x6000, 0x7000, 40);
	assert_int_equal(process_maps__version(maps, PARENT, 40), before);
	add(maps, PARENT, "//anon", 0x4000, 0x4800, 50);
	assert_int_not_equal(process_maps__version(maps, PARENT, 50), before);
	process_maps__free(maps);
}

static void test_exec(void **state)
{
	struct process_maps *maps = process_maps__new();

	add(maps, PARENT, "/a", 0x1000, 0x2000, 10);
	add(maps, PARENT, "/b", 0x1000, 0x2000, 21);
	/* Told after what the new program has mapped. */
	assert_int_equal(process_maps__exec(maps, PARENT, 20), 0);
	assert_string_equal(at(maps, PARENT, 0x1000, 15), "/a");
	assert_string_equal(at(maps, PARENT, 0x1000, 20), "");
	assert_string_equal(at(maps, PARENT, 0x1000, 21), "/b");
	assert_string_equal(all(maps, PARENT, 20), "");
	assert_string_equal(all(maps, PARENT, 21), "/b");
	process_maps__free(maps);
}

static void test_fork(void **state)
{
	struct process_maps *maps = process_maps__new();

	/* Of the process that had the child's pid before. */
	add(maps, CHILD, "/x", 0x1000, 0x2000, 5);
	add(maps, PARENT, "/a", 0x1000, 0x2000, 10);
	add(maps, PARENT, "/b", 0x4000, 0x5000, 20);
	/* After the fork, and known before it is. */
	add(maps, PARENT, "/c", 0x1000, 0x2000, 40);
	add(maps, CHILD, "/d", 0x4000, 0x5000, 50);
	assert_int_equal(process_maps__fork(maps, PARENT, CHILD, 30), 0);

	assert_string_equal(all(maps, CHILD, 10), "/x");
	assert_string_equal(all(maps, CHILD, 30), "/a/b");
	assert_string_equal(all(maps, CHILD, 50), "/a/d");
	assert_string_equal(all(maps, PARENT, 50), "/b/c");
	/* The first process ends, and the child has its pid. */
	process_maps__forget(maps, CHILD, 29);
	assert_string_equal(all(maps, CHILD, 10), "");
	assert_string_equal(all(maps, CHILD, 50), "/a/d");
	process_maps__forget(maps, CHILD, 60);
	assert_string_equal(all(maps, CHILD, 50), "");
	add(maps, CHILD, "/e", 0x4000, 0x5000, 70);
	assert_string_equal(all(maps, CHILD, 70), "/e");
	process_maps__free(maps);
}

/* A fork copies what the parent has mapped, and not what the parent had mapped before its own last fork. */
static void test_forks_of_each_other(void **state)
{
	struct process_maps *maps = process_maps__new();
	size_t before = mallinfo2().uordblks;

	add(maps, PARENT, "/a", 0x1000, 0x2000, 10);
	for (int i = 1; i <= 24; i++)
		assert_int_equal(process_maps__fork(maps, i % 2 ? PARENT : CHILD,
						    i % 2 ? CHILD : PARENT, 10 + i),
				 0);
	assert_string_equal(all(maps, PARENT, 34), "/a");
	assert_string_equal(all(maps, CHILD, 34), "/a");
	assert_in_range(mallinfo2().uordblks - before, 0, 100000);
	process_maps__free(maps);
}

static void test_lasting(void **state)
{
	struct process_maps *maps = process_maps__new();

	add(maps, PARENT, "/a", 0x1000, 0x3000, 10);
	add(maps, PARENT, "/b", 0x2000, 0x3000, 20);
	add(maps, PARENT, "/a", 0x1000, 0x2000, 30);
	assert_int_equal(process_maps__exec(maps, PARENT, 5), 0);
	assert_non_null(process_maps__find_lasting(maps, PARENT, 0x1000));
	assert_null(process_maps__find_lasting(maps, PARENT, 0x2000)); /* /a or /b */
	assert_null(process_maps__find_lasting(maps, PARENT, 0x3000));
	assert_null(process_maps__find_lasting(maps, CHILD, 0x1000));
	process_maps__free(maps);
}

/* Files and compiled code take turns at an address, told in pairs of which the later comes first. */
static void test_pruned(void **state)
{
	struct process_maps *maps = process_maps__new();
	const __u64 second = 1000000000;

	for (__u64 i = 0; i < 20000; i += 2) {
		const char *path = i % 4 ? "/a" : "/b";

		add(maps, PARENT, "//anon", 0x1000, 0x2000, (i + 1) * second);
		add(maps, PARENT, path, 0x1000, 0x2000, i * second);
		add(maps, PARENT, "//anon", 0x5000 + i * 0x1000, 0x6000 + i * 0x1000, i * second);
		assert_string_equal(at(maps, PARENT, 0x1000, i * second), path);
		assert_string_equal(at(maps, PARENT, 0x1000, (i + 1) * second), "");
		assert_string_equal(all(maps, PARENT, i * second), path);
		/* Ten before, which are kept. */
		if (i >= 20)
			assert_string_equal(at(maps, PARENT, 0x1000, (i - 20) * second), path);
		if (i >= 20)
			process_maps__settle(maps, (i - 20) * second);
	}
	/* So long ago that it is forgotten. */
	assert_string_equal(at(maps, PARENT, 0x1000, 0), "");
	assert_string_equal(at(maps, PARENT, 0x1000, 10000 * second), "");
	process_maps__free(maps);
}

/* A run of many short processes. */
static void test_many(void **state)
{
	struct process_maps *maps = process_maps__new();

	for (__u32 pid = 1; pid <= 5000; pid++) {
		add(maps, pid, "/a", 0x1000, 0x2000, pid);
		if (pid % 100)
			process_maps__forget(maps, pid, UINT64_MAX);
	}
	for (__u32 pid = 1; pid <= 5000; pid++)
		assert_string_equal(all(maps, pid, UINT64_MAX), pid % 100 ? "" : "/a");
	process_maps__free(maps);
}

/* A process in a root of its own has other paths. */
static void test_own_path(void **state)
{
	char own[PATH_MAX], path[PATH_MAX];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(fd >= 0 && len > 0);
	path[len] = '\0';
	mapped_file__own_path(fd, "/nowhere/program", own, sizeof(own));
	assert_string_equal(own, path);
	/* Another file is there. */
	mapped_file__own_path(fd, "/dev/null", own, sizeof(own));
	assert_string_equal(own, path);
	/* This is the file, too. */
	mapped_file__own_path(fd, "/proc/self/exe", own, sizeof(own));
	assert_string_equal(own, "/proc/self/exe");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	cmocka_unit_test(test_hole),
		cmocka_unit_test(test_version), cmocka_unit_test(test_exec),
		cmocka_unit_test(test_fork),	cmocka_unit_test(test_forks_of_each_other),
		cmocka_unit_test(test_lasting), cmocka_unit_test(test_pruned),
		cmocka_unit_test(test_many),	cmocka_unit_test(test_own_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
