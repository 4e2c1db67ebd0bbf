// SPDX-License-Identifier: GPL-3.0-or-later
/* Of what is in the cache, only what is ours, whole and sound is used. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cfi.h"
#include "cleanup.h"
#include "error.h"
#include "table_cache.h"
#include "unwind_tables.h"

#define MAKER	  "0123456789abcdef"
#define NO_LIMIT  (1ULL << 30)
#define SETTLES_S 3

struct fixture {
	char directory[64];
	int fd; /* of a library with a table that is worth keeping */
	char library[4096];
	struct cfi_table *table;
	struct table_key key;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	Dl_info info;

	assert_non_null(fixture);
	strcpy(fixture->directory, "/tmp/allocprof-test-cache-XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	assert_true(dladdr((void *)(uintptr_t)&qsort, &info));
	assert_non_null(realpath(info.dli_fname, fixture->library));
	fixture->fd = open(fixture->library, O_RDONLY | O_CLOEXEC);
	assert_true(fixture->fd >= 0);
	assert_int_equal(cfi_table__build(fixture->fd, fixture->library, &fixture->table, NULL), 0);
	assert_int_equal(table_key__of(fixture->fd, "abcd", &fixture->key), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", fixture->directory);
	assert_int_equal(system(command), 0);
	cfi_table__free(fixture->table);
	close(fixture->fd);
	free(fixture);
	return 0;
}

static struct table_cache *open_cache(const struct fixture *fixture, const char *maker,
				      __u64 max_bytes)
{
	struct error error = { 0 };
	struct table_cache *cache;

	if (table_cache__open_at(fixture->directory, maker, max_bytes, &cache, &error))
		fail_msg("%s", error.text);
	return cache;
}

static void assert_same_table(const struct cfi_table *a, const struct cfi_table *b)
{
	assert_int_equal(a->segment_count, b->segment_count);
	assert_int_equal(a->block_count, b->block_count);
	assert_int_equal(a->row_count, b->row_count);
	assert_int_equal(a->rule_count, b->rule_count);
	assert_memory_equal(a->segments, b->segments, a->segment_count * sizeof(*a->segments));
	assert_memory_equal(a->blocks, b->blocks, a->block_count * sizeof(*a->blocks));
	assert_memory_equal(a->rows, b->rows, a->row_count * sizeof(*a->rows));
	assert_memory_equal(a->rules, b->rules, a->rule_count * sizeof(*a->rules));
}

static void assert_kept(struct table_cache *cache, const struct fixture *fixture, bool kept)
{
	struct cfi_table *table;

	if (!kept) {
		assert_int_equal(table_cache__get(cache, &fixture->key, &table), -ENOENT);
		return;
	}
	assert_int_equal(table_cache__get(cache, &fixture->key, &table), 0);
	assert_same_table(table, fixture->table);
	cfi_table__free(table);
}

static void test_kept(void **state)
{
	struct fixture *fixture = *state;
	struct table_cache *cache = open_cache(fixture, MAKER, NO_LIMIT), *other;
	struct table_key key = fixture->key;
	struct cfi_table *table;

	assert_kept(cache, fixture, false);
	table_cache__put(cache, &fixture->key, fixture->fd, fixture->table);
	assert_kept(cache, fixture, true);
	assert_true(table_cache__size_bytes(cache) > cfi_table__size_bytes(fixture->table));
	/* Not for a file that was written to, nor for one that another build has made. */
	key.changed_ns++;
	assert_int_equal(table_cache__get(cache, &key, &table), -ENOENT);
	key = fixture->key;
	key.build_id[0]++;
	assert_int_equal(table_cache__get(cache, &key, &table), -ENOENT);
	other = open_cache(fixture, MAKER "1", NO_LIMIT);
	assert_int_equal(table_cache__size_bytes(other), table_cache__size_bytes(cache));
	assert_kept(other, fixture, false);
	table_cache__close(other);
	table_cache__close(cache);
}

static void test_file_that_changed(void **state)
{
	struct fixture *fixture = *state;
	struct table_cache *cache = open_cache(fixture, MAKER, NO_LIMIT);
	struct table_key key = fixture->key;
	struct cfi_table *table;

	/* It was read by a key that is not the file's any more. */
	key.modified_ns--;
	table_cache__put(cache, &key, fixture->fd, fixture->table);
	assert_int_equal(table_cache__get(cache, &key, &table), -ENOENT);
	table_cache__close(cache);
}

/* The cache's only file. */
static int open_entry(const struct fixture *fixture, int flags)
{
	char command[256], name[256] = "";
	FILE *listing;
	int fd;

	snprintf(command, sizeof(command), "ls -d %s/allocprof/tables/*", fixture->directory);
	listing = popen(command, "r");
	assert_non_null(listing);
	assert_int_equal(fscanf(listing, "%255s", name), 1);
	pclose(listing);
	fd = open(name, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void test_damaged(void **state)
{
	struct fixture *fixture = *state;
	struct table_cache *cache = open_cache(fixture, MAKER, NO_LIMIT);
	struct stat st;
	int fd;

	table_cache__put(cache, &fixture->key, fixture->fd, fixture->table);
	fd = open_entry(fixture, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at += at < 512 ? 1 : 997) {
		uint8_t byte, other;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = byte ^ (1 << at % 8);
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		assert_kept(cache, fixture, false);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_kept(cache, fixture, true);
	for (off_t size = st.st_size - 1; size >= 0; size = size * 3 / 4 - 1) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_kept(cache, fixture, false);
	}
	close(fd);
	table_cache__close(cache);
}

static void test_writable_by_others(void **state)
{
	struct fixture *fixture = *state;
	struct table_cache *cache = open_cache(fixture, MAKER, NO_LIMIT);
	int fd;

	table_cache__put(cache, &fixture->key, fixture->fd, fixture->table);
	fd = open_entry(fixture, O_RDONLY);
	assert_int_equal(fchmod(fd, 0620), 0);
	assert_kept(cache, fixture, false);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_kept(cache, fixture, true);
	close(fd);
	table_cache__close(cache);
}

static void assert_refused(const struct fixture *fixture, const char *directory)
{
	struct error error = { 0 };
	struct table_cache *cache;

	(void)fixture;
	assert_int_not_equal(table_cache__open_at(directory, MAKER, NO_LIMIT, &cache, &error), 0);
	assert_non_null(strstr(error.text, "/allocprof/tables"));
}

static void test_unsafe_directories(void **state)
{
	struct fixture *fixture = *state;
	char path[128], other[128];

	assert_refused(fixture, "/nonexistent");
	/* Anybody may have made the link. */
	snprintf(path, sizeof(path), "%s/link", fixture->directory);
	assert_int_equal(symlink(fixture->directory, path), 0);
	assert_refused(fixture, path);
	snprintf(path, sizeof(path), "%s/allocprof", fixture->directory);
	snprintf(other, sizeof(other), "%s/other", fixture->directory);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_refused(fixture, fixture->directory);
	assert_int_equal(unlink(path), 0);
	/* Others could put a table there. */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0770), 0);
	assert_refused(fixture, fixture->directory);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chmod(fixture->directory, 0707), 0);
	assert_refused(fixture, fixture->directory);
	/* Of others' files there. */
	assert_int_equal(chmod(fixture->directory, 01777), 0);
	table_cache__close(open_cache(fixture, MAKER, NO_LIMIT));
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_refused(fixture, fixture->directory);
	}
}

/* Copies of the library, each with a table of its own. */
#define COPIES 5

static void test_bounded(void **state)
{
	struct fixture *fixture = *state;
	size_t table_bytes = cfi_table__size_bytes(fixture->table) + 1024;
	struct table_cache *cache = open_cache(fixture, MAKER, COPIES * table_bytes);
	struct table_key keys[COPIES];
	struct cfi_table *table;
	int fds[COPIES], kept = 0;
	struct stat st;

	assert_int_equal(fstat(fixture->fd, &st), 0);
	for (int i = 0; i < COPIES; i++) {
		char path[128];
		off_t at = 0;

		snprintf(path, sizeof(path), "%s/copy%d", fixture->directory, i);
		fds[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fds[i] >= 0);
		while (at < st.st_size)
			assert_true(sendfile(fds[i], fixture->fd, &at, st.st_size - at) > 0);
		assert_int_equal(table_key__of(fds[i], "abcd", &keys[i]), 0);
		/* It could be written to without a sign of it. */
		table_cache__put(cache, &keys[i], fds[i], fixture->table);
		assert_int_equal(table_cache__get(cache, &keys[i], &table), -ENOENT);
	}
	sleep(SETTLES_S);
	for (int i = 0; i < COPIES; i++) {
		table_cache__put(cache, &keys[i], fds[i], fixture->table);
		assert_int_equal(table_cache__get(cache, &keys[i], &table), 0);
		cfi_table__free(table);
		close(fds[i]);
	}
	/* One more: two of five are too many, the oldest go. */
	assert_int_equal(table_cache__get(cache, &keys[0], &table), 0);
	cfi_table__free(table);
	table_cache__put(cache, &fixture->key, fixture->fd, fixture->table);
	assert_kept(cache, fixture, true);
	for (int i = 0; i < COPIES; i++)
		if (!table_cache__get(cache, &keys[i], &table)) {
			cfi_table__free(table);
			kept |= 1 << i;
		}
	assert_int_equal(kept, 1 << 0 | 1 << 3 | 1 << 4);
	assert_true(table_cache__size_bytes(cache) <= COPIES * table_bytes);
	table_cache__close(cache);
}

static int write_nowhere(void *context, enum unwind_map map, __u32 index, const void *value)
{
	(void)context, (void)map, (void)index, (void)value;
	return 0;
}

/* Whatever is taken for sound can be used as one that was built; the sanitizers watch. */
static void use(const struct cfi_table *table)
{
	struct unwind_tables *tables =
		unwind_tables__new(&(struct unwind_writer){ .write = write_nowhere });
	struct loaded_table loaded = { 0 };

	assert_non_null(tables);
	unwind_tables__load(tables, table, &loaded);
	unwind_tables__free(tables);
	for (__u32 i = 0; i < table->segment_count; i++) {
		const struct unwind_segment *segment = &table->segments[i];

		for (__u32 at = 0; at < segment->size; at += segment->size / 997 + 1) {
			struct unwind_rule rule;
			struct cfi_range range;

			cfi_table__lookup(table, segment->vaddr + at, &rule);
			assert_true(cfi_table__range(table, segment->vaddr + at, &range));
			assert_true(range.lo <= segment->vaddr + at);
			assert_true(range.hi > segment->vaddr + at);
		}
	}
}

static int n_sound, n_unsound;

static void change(const struct cfi_table *table, void *array, size_t size, unsigned int *random)
{
	uint8_t *bytes = array, before;
	size_t at;

	*random = *random * 1103515245 + 12345;
	at = (*random >> 4) % size;
	before = bytes[at];
	bytes[at] ^= 1 << (*random >> 28) % 8;
	if (cfi_table__is_sound(table)) {
		n_sound++;
		use(table);
	} else {
		n_unsound++;
	}
	bytes[at] = before;
}

static void test_sound(void **state)
{
	struct fixture *fixture = *state;
	struct cfi_table *table = fixture->table;
	unsigned int random = 1;
	__u32 *counts[] = { &table->segment_count, &table->block_count, &table->row_count,
			    &table->rule_count };

	assert_true(cfi_table__is_sound(table));
	use(table);
	for (int i = 0; i < 300; i++) {
		change(table, table->segments, table->segment_count * sizeof(*table->segments),
		       &random);
		change(table, table->blocks, table->block_count * sizeof(*table->blocks), &random);
		change(table, table->rows, table->row_count * sizeof(*table->rows), &random);
		change(table, table->rules, table->rule_count * sizeof(*table->rules), &random);
	}
	/* Some changes make another table that would be one. */
	assert_true(n_sound > 100 && n_unsound > 100);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		__u32 count = *counts[i];

		*counts[i] = 0;
		assert_false(cfi_table__is_sound(table));
		*counts[i] = count / 2;
		assert_false(cfi_table__is_sound(table));
		*counts[i] = count;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_file_that_changed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_writable_by_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unsafe_directories, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sound, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
