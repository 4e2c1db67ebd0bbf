// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"
#include "elf_host.h"
#include "jit_dump.h"
#include "jit_query.h"

/* A dump that is being made. */
struct dump {
	size_t size, record; /* record: where the last one begins */
	__u8 bytes[1 << 16];
};

static void put(struct dump *dump, const void *bytes, size_t size)
{
	memcpy(dump->bytes + dump->size, bytes, size);
	dump->size += size;
}

static void put_u32(struct dump *dump, __u32 value)
{
	put(dump, &value, sizeof(value));
}

static void put_u64(struct dump *dump, __u64 value)
{
	put(dump, &value, sizeof(value));
}

static void set_u32(struct dump *dump, size_t offset, __u32 value)
{
	memcpy(dump->bytes + offset, &value, sizeof(value));
}

static struct dump *begin(__u64 flags)
{
	struct dump *dump = calloc(1, sizeof(*dump));

	put_u32(dump, 0x4a695444);
	put_u32(dump, 1);
	put_u32(dump, 40);
	put_u32(dump, elf_host.machine);
	put_u32(dump, 0);
	put_u32(dump, 1234);
	put_u64(dump, 0);
	put_u64(dump, flags);
	return dump;
}

static void begin_record(struct dump *dump, __u32 id, __u64 time_ns)
{
	dump->record = dump->size;
	put_u32(dump, id);
	put_u32(dump, 0);
	put_u64(dump, time_ns);
}

static void end_record(struct dump *dump)
{
	set_u32(dump, dump->record + 4, dump->size - dump->record);
}

static void load(struct dump *dump, __u64 time_ns, __u64 address, __u64 size, __u64 index,
		 const char *name)
{
	static const char code[16];

	begin_record(dump, 0, time_ns);
	put_u64(dump, 0);
	put_u64(dump, address);
	put_u64(dump, address);
	put_u64(dump, size);
	put_u64(dump, index);
	put(dump, name, strlen(name) + 1);
	put(dump, code, sizeof(code));
	end_record(dump);
}

static void move(struct dump *dump, __u64 time_ns, __u64 from, __u64 to, __u64 size, __u64 index)
{
	begin_record(dump, 1, time_ns);
	put_u64(dump, 0);
	put_u64(dump, to);
	put_u64(dump, from);
	put_u64(dump, to);
	put_u64(dump, size);
	put_u64(dump, index);
	end_record(dump);
}

static void begin_lines(struct dump *dump, __u64 address, __u64 n)
{
	begin_record(dump, 2, 0);
	put_u64(dump, address);
	put_u64(dump, n);
}

static void put_line(struct dump *dump, __u64 address, __u32 line, const char *file)
{
	put_u64(dump, address);
	put_u32(dump, line);
	put_u32(dump, 0);
	put(dump, file, strlen(file) + 1);
}

static struct arena texts;

static int look_up(const struct dump *dump, struct jit_query *queries, size_t n)
{
	int fd = memfd_create("dump", 0), err;

	assert_int_equal(write(fd, dump->bytes, dump->size), dump->size);
	err = jit_dump__look_up(fd, queries, n, &texts);
	close(fd);
	return err;
}

static struct jit_query ask(const struct dump *dump, __u64 address, __u64 time_ns)
{
	struct jit_query query = { .address = address, .time_ns = time_ns };

	assert_int_equal(look_up(dump, &query, 1), 0);
	return query;
}

static void check_name(const struct dump *dump, __u64 address, __u64 time_ns, const char *name)
{
	struct jit_query query = ask(dump, address, time_ns);

	if (name ? !query.name || strcmp(query.name, name) != 0 : !!query.name)
		fail_msg("%#llx at %llu: expected %s, got %s", address, time_ns,
			 name ? name : "none", query.name ? query.name : "none");
}

static void check_line(const struct dump *dump, __u64 address, const char *file, __u32 line)
{
	struct jit_query query = ask(dump, address, 100);

	assert_non_null(query.name);
	assert_string_equal(query.file ? query.file : "none", file);
	assert_int_equal(query.line, line);
}

static void release(struct dump *dump)
{
	free(dump);
	arena__release(&texts);
	texts = (struct arena){ 0 };
}

static void test_names(void **state)
{
	struct dump *dump = begin(0);
	struct jit_query queries[] = {
		{ .address = 0xfff, .time_ns = 9 },  { .address = 0x1000, .time_ns = 9 },
		{ .address = 0x10ff, .time_ns = 9 }, { .address = 0x1100, .time_ns = 9 },
		{ .address = 0x2000, .time_ns = 9 },
	};

	load(dump, 1, 0x1000, 0x100, 1, "first (with spaces)");
	load(dump, 2, 0x2000, 0x10, 2, "a\033[31mred\rname");
	load(dump, 3, ~0ULL - 4, 0x10, 3, "past the end");
	assert_int_equal(look_up(dump, queries, ARRAY_SIZE(queries)), 0);
	assert_null(queries[0].name);
	assert_string_equal(queries[1].name, "first (with spaces)");
	assert_string_equal(queries[2].name, "first (with spaces)");
	assert_null(queries[3].name);
	assert_string_equal(queries[4].name, "a?[31mred?name");
	assert_null(queries[1].file);
	check_name(dump, ~0ULL - 3, 9, NULL);
	release(dump);
}

/* An address is named by the code that was there at the time, or that came first after it. */
static void test_reused_addresses(void **state)
{
	struct dump *dump = begin(0);

	load(dump, 10, 0x1000, 0x100, 1, "first");
	load(dump, 20, 0x1080, 0x100, 2, "second");
	load(dump, 30, 0x1000, 0x100, 3, "third");
	/* Threads may write in another order than they took the times. */
	load(dump, 25, 0x1000, 0x10, 4, "late");
	check_name(dump, 0x1000, 5, "first");
	check_name(dump, 0x1000, 10, "first");
	check_name(dump, 0x1080, 15, "first");
	check_name(dump, 0x1080, 20, "second");
	check_name(dump, 0x1000, 24, "first");
	check_name(dump, 0x1000, 29, "late");
	check_name(dump, 0x1000, 30, "third");
	check_name(dump, 0x1100, 99, "second");
	release(dump);
	/* The processor's counter cannot be compared with the time of a stack. */
	dump = begin(1);
	load(dump, 99, 0x1000, 0x100, 1, "first");
	load(dump, 98, 0x1000, 0x100, 2, "last");
	check_name(dump, 0x1000, 5, "last");
	release(dump);
}

static void test_moved_code(void **state)
{
	struct dump *dump = begin(0);

	begin_lines(dump, 0x1000, 2);
	put_line(dump, 0x1000, 7, "/a.c");
	put_line(dump, 0x1008, 8, "/a.c");
	end_record(dump);
	load(dump, 10, 0x1000, 0x10, 1, "moves");
	move(dump, 20, 0x1000, 0x2000, 0x10, 1);
	move(dump, 30, 0x2000, 0x3000, 0x10, 1);
	move(dump, 31, 0x5000, 0x6000, 0x10, 77);
	load(dump, 40, 0x2000, 0x10, 2, "other");
	check_name(dump, 0x1000, 10, "moves");
	check_name(dump, 0x2004, 25, "moves");
	check_name(dump, 0x2004, 45, "other");
	check_name(dump, 0x3004, 45, "moves");
	check_name(dump, 0x6000, 45, NULL);
	check_line(dump, 0x3004, "/a.c", 7);
	check_line(dump, 0x300f, "/a.c", 8);
	release(dump);
}

/* @shift: how far the lines are behind the code. */
static void check_lines(__u64 shift)
{
	struct dump *dump = begin(0);

	begin_lines(dump, 0x1000, 4);
	put_line(dump, 0x1000 + shift, 10, "/src/a.js");
	put_line(dump, 0x1010 + shift, 12, "\xff");
	put_line(dump, 0x1020 + shift, 3, "/src/b.js");
	put_line(dump, 0x1030 + shift, 0x80000000, "/src/no line");
	end_record(dump);
	load(dump, 10, 0x1000, 0x100, 1, "with lines");
	load(dump, 11, 0x1000 + 0x100, 0x100, 2, "without");
	check_line(dump, 0x1000, "/src/a.js", 10);
	check_line(dump, 0x100f, "/src/a.js", 10);
	check_line(dump, 0x1010, "/src/a.js", 12);
	check_line(dump, 0x1020, "/src/b.js", 3);
	check_line(dump, 0x10ff, "/src/b.js", 3);
	check_line(dump, 0x1100, "none", 0);
	release(dump);
}

static void test_lines(void **state)
{
	check_lines(0);
	/* As V8 and LLVM write them. */
	check_lines(0x40);
}

/* One line near its code tells that the dump's lines are all as they should be. */
static void test_lines_far_from_the_beginning(void **state)
{
	struct dump *dump = begin(0);

	begin_lines(dump, 0x1000, 2);
	put_line(dump, 0x1050, 5, "/a");
	put_line(dump, 0x1080, 6, "/a");
	end_record(dump);
	load(dump, 1, 0x1000, 0x100, 1, "far");
	begin_lines(dump, 0x2000, 1);
	put_line(dump, 0x2004, 1, "/b");
	end_record(dump);
	load(dump, 2, 0x2000, 0x100, 2, "near");
	check_line(dump, 0x1040, "none", 0);
	check_line(dump, 0x1050, "/a", 5);
	release(dump);
}

/* V8's lines of code that it has optimized are of any file, and its paths may be nonsense. */
static void test_lines_of_v8(void **state)
{
	static const char *const names[] = { "JS:*f /script.js:1:1", "JS:+f /script.js:1:1",
					     "JS:^f /other.js:1:1", "JS:^f /script.js:1:1" };
	struct dump *dump = begin(0);

	for (__u64 i = 0; i < ARRAY_SIZE(names); i++) {
		begin_lines(dump, 0x1000 * i, 1);
		put_line(dump, 0x1000 * i, 1063, "/script.js");
		end_record(dump);
		load(dump, 1, 0x1000 * i, 0x100, i, names[i]);
	}
	check_line(dump, 0x0000, "none", 0);
	check_line(dump, 0x1000, "none", 0);
	check_line(dump, 0x2000, "none", 0);
	check_line(dump, 0x3000, "/script.js", 1063);
	release(dump);
}

static void test_other_files(void **state)
{
	struct dump *dump = begin(0), *empty = calloc(1, sizeof(*empty));
	struct jit_query query = { .address = 0x1000 };

	load(dump, 1, 0x1000, 0x100, 1, "name");
	assert_int_equal(look_up(empty, &query, 1), 0);
	assert_null(query.name);
	empty->size = 20;
	assert_int_equal(look_up(empty, &query, 1), -ENOEXEC);
	free(empty);
	set_u32(dump, 0, 0x4454694a);
	assert_int_equal(look_up(dump, &query, 1), -ENOEXEC);
	set_u32(dump, 0, 0x4a695444);
	set_u32(dump, 4, 2);
	assert_int_equal(look_up(dump, &query, 1), -ENOEXEC);
	set_u32(dump, 4, 1);
	set_u32(dump, 12, elf_host.machine + 1);
	assert_int_equal(look_up(dump, &query, 1), -ENOEXEC);
	set_u32(dump, 12, elf_host.machine);
	set_u32(dump, 8, 39);
	assert_int_equal(look_up(dump, &query, 1), -ENOEXEC);
	set_u32(dump, 8, 40);
	check_name(dump, 0x1000, 1, "name");
	release(dump);
}

/* Records that lie about their size, and what is being written. */
static void test_cut_records(void **state)
{
	struct dump *dump = begin(0);
	char file[2 * JIT_FILE_BYTES];
	size_t whole;

	load(dump, 1, 0x1000, 0x100, 1, "whole");
	whole = dump->size;
	load(dump, 2, 0x2000, 0x100, 2, "half");
	dump->size -= 4;
	check_name(dump, 0x1000, 9, "whole");
	check_name(dump, 0x2000, 9, NULL);
	dump->size += 4;
	check_name(dump, 0x2000, 9, "half");
	/* A name without an end ends with its record. */
	set_u32(dump, dump->record + 4, 56 + 3);
	check_name(dump, 0x2000, 9, "hal");
	set_u32(dump, dump->record + 4, 15);
	check_name(dump, 0x2000, 9, NULL);
	dump->size = whole;
	/* One that is too short has no address, whatever follows. */
	load(dump, 3, 0x1000, 0x100, 3, "short");
	check_name(dump, 0x1000, 9, "short");
	set_u32(dump, dump->record + 4, 55);
	check_name(dump, 0x1000, 9, "whole");
	dump->size = whole;
	/* More lines than there are, and a path that is too long. */
	memset(file, 'f', sizeof(file));
	file[sizeof(file) - 1] = '\0';
	begin_lines(dump, 0x3000, ~0ULL);
	put_line(dump, 0x3000, 1, "/a");
	put_line(dump, 0x3010, 2, file);
	put_line(dump, 0x3020, 3, "/b");
	end_record(dump);
	load(dump, 3, 0x3000, 0x100, 3, "lines");
	check_line(dump, 0x3000, "/a", 1);
	check_line(dump, 0x3030, "/a", 1);
	/* The dump ends there, and the records that follow are not read. */
	begin_record(dump, 3, 4);
	end_record(dump);
	load(dump, 5, 0x4000, 0x100, 4, "behind");
	check_name(dump, 0x4000, 9, NULL);
	release(dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_reused_addresses),
		cmocka_unit_test(test_moved_code),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_lines_far_from_the_beginning),
		cmocka_unit_test(test_lines_of_v8),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_cut_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
