// SPDX-License-Identifier: GPL-3.0-or-later
/* The event log is read as it was written, and whatever is in it, nothing is read that is out of bounds. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "error.h"
#include "event_blocks.h"
#include "event_log.h"
#include "event_log_format.h"
#include "export_events.h"
#include "filter.h"
#include "profile.h"
#include "random.h"

#define N_EVENTS 3000
#define N_RUNS	 400

static int enter_directory(void **state)
{
	char template[] = "/tmp/allocprof-test.XXXXXX";

	if (!mkdtemp(template) || chdir(template))
		return -1;
	*state = strdup(template);
	return 0;
}

static int leave_directory(void **state)
{
	unlink("log");
	unlink("log.old");
	unlink("other");
	rmdir(*state);
	free(*state);
	return 0;
}

/* The event number @n: all kinds, with numbers that differ much from those before. */
static struct event_log_event event_number(__u64 n)
{
	struct event_log_event event = {
		.kind = n % AP_EVENT_KINDS,
		.temporary = n & 1,
		.thread = n / 7 % 5,
		.process = n % 11 ? 1 : 2,
		.site = n % 3,
		.time_ns = 1000000 + n * n * n,
		.id = n % 13 ? n : 0,
		.address = n * 0x9e3779b97f4a7c15,
		.size_bytes = n % 17 ? n : UINT64_MAX,
		.weight = n % 5 ? 1 : n + 2,
	};

	if (event.kind == EVENT_LOG_REALLOC) {
		event.old_site = 2;
		event.old_address = ~event.address;
		event.old_size_bytes = n << 32;
		event.old_weight = n % 3 ? 1 : UINT32_MAX;
	}
	return event;
}

/* Writes a log of two processes, and @n events after its definitions. */
static void write_log(const char *path, __u64 n, bool ends)
{
	const struct event_log_process first = {
		.pid = 100, .space = 1, .time_ns = 5, .comm = "app"
	};
	const struct event_log_process second = { .start = EVENT_LOG_EXECED,
						  .parent = 1,
						  .pid = 100,
						  .space = 2,
						  .ended_space = 1,
						  .time_ns = 9,
						  .comm = "app;\"2" };
	const struct event_log_exit exit = { .process = 2, .ended_space = 2, .time_ns = 99 };
	const __u32 frames[] = { 2, 1, 2 };
	struct event_log_writer *writer;
	struct error error = { 0 };

	if (event_log_writer__new(path, &writer, &error))
		fail_msg("%s", error.text);
	assert_int_equal(event_log_writer__module(writer, "/usr/lib/libfoo.so.1", "abcd"), 0);
	assert_int_equal(event_log_writer__frame(writer, 1, 0x1234, false), 0);
	assert_int_equal(event_log_writer__frame(writer, 0, UINT64_MAX, true), 0);
	assert_int_equal(event_log_writer__stack(writer, "complete", frames, 3), 0);
	assert_int_equal(event_log_writer__stack(writer, "no_mapping", frames, 0), 0);
	assert_int_equal(event_log_writer__process(writer, &first), 0);
	assert_int_equal(event_log_writer__process(writer, &second), 0);
	assert_int_equal(
		event_log_writer__site(writer, &(struct event_log_site){ 1, 1, "main", "malloc" }),
		0);
	assert_int_equal(
		event_log_writer__site(writer, &(struct event_log_site){ 2, 0, "", "realloc" }), 0);
	for (__u64 i = 0; i < n; i++) {
		struct event_log_event event = event_number(i);

		assert_int_equal(event_log_writer__event(writer, &event), 0);
		if (i % 1000 == 999)
			assert_int_equal(event_log_writer__flush(writer), 0);
	}
	assert_int_equal(event_log_writer__set_stack(writer, 2, 2), 0);
	assert_int_equal(event_log_writer__exit(writer, &exit), 0);
	assert_int_equal(ends ? event_log_writer__end(writer, 7) : event_log_writer__flush(writer),
			 0);
	event_log_writer__free(writer);
}

static struct event_log_reader *open_log(const char *path)
{
	struct event_log_reader *reader;
	struct error error = { 0 };

	if (event_log_reader__open(path, &reader, &error))
		fail_msg("%s", error.text);
	return reader;
}

/* Reads @path to its end, looks up all that its items refer to, and frees it. Returns the result of the
 * last read; -1 if the log could not be opened. */
static int read_all(const char *path, __u64 *n_events, bool *complete)
{
	struct event_log_reader *reader;
	struct event_log_item item;
	struct event_log_stack stack;
	struct error error = { 0 };
	__u64 n_lost;
	int more;

	if (event_log_reader__open(path, &reader, &error)) {
		assert_true(error.text[0]);
		return -1;
	}
	while ((more = event_log_reader__next(reader, &item, &error)) > 0) {
		const struct event_log_site *site =
			item.what == EVENT_LOG_EVENT
				? event_log_reader__site(reader, item.event.site)
				: NULL;

		if (item.what == EVENT_LOG_EVENT && item.event.site)
			assert_non_null(site);
		if (site && event_log_reader__stack(reader, site->stack, &stack))
			for (__u32 i = 0; i < stack.n_frames; i++)
				assert_non_null(event_log_reader__frame(reader, stack.frames[i]));
	}
	assert_true(more == 0 || error.text[0]);
	*complete = event_log_reader__is_complete(reader, n_events, &n_lost);
	event_log_reader__free(reader);
	return more;
}

static void test_reads_what_was_written(void **state)
{
	struct event_log_reader *reader;
	struct event_log_stack stack;
	struct event_log_item item;
	struct error error = { 0 };
	__u64 n_events, n_lost;

	write_log("log", N_EVENTS, true);
	reader = open_log("log");
	assert_int_equal(event_log_reader__next(reader, &item, &error), 1);
	assert_int_equal(item.what, EVENT_LOG_PROCESS);
	assert_int_equal(item.process_id, 1);
	assert_string_equal(item.process.comm, "app");
	assert_int_equal(event_log_reader__next(reader, &item, &error), 1);
	assert_int_equal(item.process.start, EVENT_LOG_EXECED);
	assert_int_equal(item.process.ended_space, 1);
	assert_string_equal(event_log_reader__process(reader, 2)->comm, "app;\"2");
	for (__u64 n = 0; n < N_EVENTS; n++) {
		struct event_log_event expected = event_number(n);

		assert_int_equal(event_log_reader__next(reader, &item, &error), 1);
		assert_int_equal(item.what, EVENT_LOG_EVENT);
		assert_int_equal(item.event.kind, expected.kind);
		assert_int_equal(item.event.temporary, expected.temporary);
		assert_int_equal(item.event.weight, expected.weight);
		assert_int_equal(item.event.old_weight, expected.old_weight);
		assert_int_equal(item.event.thread, expected.thread);
		assert_int_equal(item.event.process, expected.process);
		assert_int_equal(item.event.site, expected.site);
		assert_true(item.event.time_ns == expected.time_ns);
		assert_true(item.event.id == expected.id);
		assert_true(item.event.address == expected.address);
		assert_true(item.event.size_bytes == expected.size_bytes);
		assert_int_equal(item.event.old_site, expected.old_site);
		assert_true(item.event.old_address == expected.old_address);
		assert_true(item.event.old_size_bytes == expected.old_size_bytes);
	}
	assert_int_equal(event_log_reader__site(reader, 2)->stack, 0);
	assert_int_equal(event_log_reader__next(reader, &item, &error), 1);
	assert_int_equal(item.what, EVENT_LOG_EXIT);
	assert_int_equal(event_log_reader__next(reader, &item, &error), 0);
	assert_true(event_log_reader__is_complete(reader, &n_events, &n_lost));
	assert_int_equal(n_events, N_EVENTS);
	assert_int_equal(n_lost, 7);
	assert_int_equal(event_log_reader__site(reader, 2)->stack, 2);
	assert_true(event_log_reader__stack(reader, 1, &stack));
	assert_int_equal(stack.n_frames, 3);
	assert_true(event_log_reader__frame(reader, stack.frames[0])->offset == UINT64_MAX);
	assert_string_equal(event_log_reader__module(reader, 1), "/usr/lib/libfoo.so.1");
	assert_false(event_log_reader__stack(reader, 3, &stack));
	assert_null(event_log_reader__module(reader, 0));
	event_log_reader__free(reader);
}

static void test_an_older_log_is_kept_until_there_is_a_block(void **state)
{
	struct event_log_writer *writer;
	struct error error = { 0 };
	__u64 n_events;
	bool complete;

	write_log("log", 5, true);
	assert_int_equal(event_log_writer__new("log", &writer, &error), 0);
	event_log_writer__free(writer);
	assert_int_equal(access("log.old", F_OK), -1);
	write_log("log", 6, true);
	assert_int_equal(read_all("log", &n_events, &complete), 0);
	assert_int_equal(n_events, 6);
	assert_int_equal(read_all("log.old", &n_events, &complete), 0);
	assert_int_equal(n_events, 5);
}

static unsigned char *read_file(const char *path, size_t *size)
{
	unsigned char *bytes;
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc(st.st_size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, st.st_size), st.st_size);
	close(fd);
	*size = st.st_size;
	return bytes;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static void test_a_log_that_was_cut_off_is_read_to_its_last_block(void **state)
{
	__u64 n_events, before = 0;
	unsigned char *bytes;
	bool complete;
	size_t size;

	write_log("log", 2500, true);
	bytes = read_file("log", &size);
	for (size_t cut = 0; cut < size; cut += cut < 200 || size - cut < 200 ? 1 : 97) {
		int result;

		write_file("other", bytes, cut);
		result = read_all("other", &n_events, &complete);
		if (cut < sizeof(struct event_log_header)) {
			assert_int_equal(result, -1);
			continue;
		}
		assert_int_equal(result, 0);
		assert_false(complete);
		assert_true(n_events >= before);
		assert_true(n_events == 0 || n_events == 1000 || n_events == 2000 ||
			    n_events == 2500);
		before = n_events;
	}
	assert_int_equal(before, 2500);
	free(bytes);
}

static void test_each_changed_byte_is_found(void **state)
{
	__u64 n_events;
	unsigned char *bytes;
	bool complete;
	size_t size;

	write_log("log", 40, true);
	bytes = read_file("log", &size);
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 1 << i % 8;
		write_file("other", bytes, size);
		bytes[i] ^= 1 << i % 8;
		assert_true(read_all("other", &n_events, &complete) != 0 || !complete);
	}
	free(bytes);
}

/* Items that are nonsense in blocks whose checksums are right. */
static void test_nonsense_within_sound_blocks(void **state)
{
	size_t size, stored_size;
	unsigned char *bytes, *changed, *items = malloc(EVENT_LOG_MOST_BYTES);
	struct event_log_block *block;
	uLongf unpacked = EVENT_LOG_MOST_BYTES;
	__u64 n_events;
	bool complete;

	seed(4711);
	assert_non_null(items);
	write_log("log", 200, false);
	bytes = read_file("log", &size);
	block = (struct event_log_block *)(bytes + sizeof(struct event_log_header));
	assert_int_equal(
		uncompress(items, &unpacked, (unsigned char *)(block + 1), block->stored_bytes),
		Z_OK);
	stored_size = sizeof(struct event_log_header) + sizeof(*block) + compressBound(unpacked);
	changed = malloc(stored_size);
	assert_non_null(changed);
	memcpy(changed, bytes, sizeof(struct event_log_header) + sizeof(*block));
	block = (struct event_log_block *)(changed + sizeof(struct event_log_header));
	for (int run = 0; run < N_RUNS; run++) {
		_Alignas(8) unsigned char nonsense[EVENT_LOG_MOST_TEXT * 2];
		uLongf stored = compressBound(unpacked);
		size_t n = unpacked < sizeof(nonsense) ? unpacked : sizeof(nonsense);

		memcpy(nonsense, items, n);
		for (int i = 0; i <= run % 8; i++)
			nonsense[below(n)] = random_u64();
		assert_int_equal(compress2((unsigned char *)(block + 1), &stored, nonsense, n, 1),
				 Z_OK);
		block->stored_bytes = stored;
		block->unpacked_bytes = n;
		block->stored_crc = crc32(0, (unsigned char *)(block + 1), stored);
		block->crc =
			crc32(0, (unsigned char *)block, offsetof(struct event_log_block, crc));
		write_file("other", changed,
			   sizeof(struct event_log_header) + sizeof(*block) + stored);
		read_all("other", &n_events, &complete);
	}
	free(changed);
	free(items);
	free(bytes);
}

/* Appends a block of @n items of @size bytes each to a log that has one event. */
static void append_block(int fd, const unsigned char *item, size_t size, size_t n)
{
	unsigned char *items = malloc(n * size), *stored = malloc(compressBound(n * size));
	struct event_log_block block = {
		.magic = EVENT_LOG_BLOCK_MAGIC,
		.unpacked_bytes = n * size,
		.first_event = 1,
	};
	uLongf stored_bytes = compressBound(n * size);

	assert_non_null(items);
	assert_non_null(stored);
	for (size_t i = 0; i < n; i++)
		memcpy(items + i * size, item, size);
	assert_int_equal(compress2(stored, &stored_bytes, items, n * size, 9), Z_OK);
	block.stored_bytes = stored_bytes;
	block.stored_crc = crc32(0, stored, stored_bytes);
	block.crc = crc32(0, (unsigned char *)&block, offsetof(struct event_log_block, crc));
	assert_int_equal(write(fd, &block, sizeof(block)), sizeof(block));
	assert_int_equal(write(fd, stored, stored_bytes), stored_bytes);
	free(stored);
	free(items);
}

/* Blocks of sites without names, a thousand times as large as what the file has of them. */
static void test_more_definitions_than_bytes(void **state)
{
	const unsigned char site[] = { TAG_SITE, 0, 0, 0, 0 };
	static const char before[] = "defines more than ";
	struct event_log_reader *reader;
	struct event_log_item item;
	struct error error = { 0 };
	const char *limit;
	int fd;

	write_log("log", 1, false);
	fd = open("log", O_WRONLY | O_APPEND);
	for (int i = 0; i < 300; i++)
		append_block(fd, site, sizeof(site), EVENT_LOG_MOST_BYTES / sizeof(site));
	close(fd);
	assert_int_equal(event_log_reader__open("log", &reader, &error), 0);
	while (event_log_reader__next(reader, &item, &error) > 0)
		;
	event_log_reader__free(reader);
	limit = strstr(error.text, before);
	assert_non_null(limit);
	/* So much of its stacks and names is in memory then, and not a gigabyte. */
	assert_in_range(strtoul(limit + strlen(before), NULL, 10), 16, 100);
	assert_non_null(strstr(error.text, "MiB of stacks and names in its first"));
}

static void test_other_files_are_refused(void **state)
{
	struct event_log_reader *reader;
	struct error error = { 0 };

	write_file("other", "SQLite format 3", 15);
	assert_int_equal(event_log_reader__open("other", &reader, &error), -EINVAL);
	assert_non_null(strstr(error.text, "is no event log of allocprof"));
	assert_int_equal(event_log_reader__open(".", &reader, &error), -EINVAL);
	assert_int_equal(event_log_reader__open("nowhere", &reader, &error), -ENOENT);
}

/* They pack a thousand times smaller than the blocks are. */
static void test_more_blocks_than_bytes(void **state)
{
	const struct event_log_process process = {
		.pid = 100, .space = 1, .time_ns = 5, .comm = "app"
	};
	struct event_log_event event = {
		.process = 1, .site = 1, .time_ns = 9, .size_bytes = 8, .weight = 1
	};
	struct filter_options filter = { 0 };
	const struct event_blocks_options options = { .filter = &filter, .most = 10 };
	struct profile *profile = profile__new();
	struct event_log_writer *writer;
	struct event_log_reader *reader;
	struct event_blocks blocks;
	struct error error = { 0 };

	assert_int_equal(event_log_writer__new("log", &writer, &error), 0);
	assert_int_equal(event_log_writer__process(writer, &process), 0);
	assert_int_equal(
		event_log_writer__site(writer, &(struct event_log_site){ 1, 0, "", "malloc" }), 0);
	for (event.id = 1; event.id <= 2500000; event.id++) {
		event.address += 16;
		assert_int_equal(event_log_writer__event(writer, &event), 0);
	}
	assert_int_equal(event_log_writer__end(writer, 0), 0);
	event_log_writer__free(writer);
	reader = open_log("log");
	assert_int_equal(event_blocks__read(reader, profile, NULL, &options, &blocks, &error),
			 -EFBIG);
	assert_non_null(strstr(error.text, "made to fill the memory"));
	event_log_reader__free(reader);
	profile__free(profile);
}

/* The log says the stack of the second site behind all of its events. */
static void test_export_has_stacks_that_come_late(void **state)
{
	struct event_log_reader *log, *known;
	struct event_log_item item;
	struct error error = { 0 };
	size_t size, n_early = 0, n_late = 0;
	char *text = NULL;
	FILE *to = open_memstream(&text, &size);

	write_log("log", 100, true);
	log = open_log("log");
	known = open_log("log");
	while (event_log_reader__next(known, &item, &error) > 0)
		;
	assert_int_equal(export_events__write(log, known, NULL, BACKTRACE_NONE, to, &error), 0);
	fclose(to);
	assert_null(strstr(text, "\"stack\":null"));
	for (const char *at = text; (at = strstr(at, "\"stack\":1}")); at++)
		n_early++;
	for (const char *at = text; (at = strstr(at, "\"stack\":2}")); at++)
		n_late++;
	assert_true(n_early > 0 && n_late > 0);
	free(text);
	event_log_reader__free(log);
	event_log_reader__free(known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_export_has_stacks_that_come_late,
						enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(test_more_blocks_than_bytes, enter_directory,
						leave_directory),
		cmocka_unit_test_setup_teardown(test_reads_what_was_written, enter_directory,
						leave_directory),
		cmocka_unit_test_setup_teardown(test_an_older_log_is_kept_until_there_is_a_block,
						enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(
			test_a_log_that_was_cut_off_is_read_to_its_last_block, enter_directory,
			leave_directory),
		cmocka_unit_test_setup_teardown(test_each_changed_byte_is_found, enter_directory,
						leave_directory),
		cmocka_unit_test_setup_teardown(test_nonsense_within_sound_blocks, enter_directory,
						leave_directory),
		cmocka_unit_test_setup_teardown(test_more_definitions_than_bytes, enter_directory,
						leave_directory),
		cmocka_unit_test_setup_teardown(test_other_files_are_refused, enter_directory,
						leave_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
