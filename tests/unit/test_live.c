// SPDX-License-Identifier: GPL-3.0-or-later
/* The kernel refuses maps and readings while blocks are followed: the recording goes on, and what is missing is
 * counted. The linker puts the functions below in the place of libbpf's (--wrap). */
#include "guarded.h"
#include "unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"
#include "bpf_maps.h"
#include "collector.h"
#include "live.h"
#include "profile.h"
#include "record_abi.h"
#include "unwind_tables.h"

#define DRAIN_AT   8
#define THREADS_FD 1001

static struct {
	const char *refused; /* maps with this name cannot be made, NULL: all can */
	int threads_error;   /* reading the threads' map fails */
} kernel;

int __wrap_bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
			  __u32 value_size, __u32 max_entries,
			  const struct bpf_map_create_opts *options);
int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);
int __wrap_bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
				const struct bpf_map_batch_opts *options);
int __wrap_bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
				const struct bpf_map_batch_opts *options);
int __wrap_bpf_map_lookup_and_delete_batch(int fd, void *in, void *out, void *keys, void *values,
					   __u32 *count, const struct bpf_map_batch_opts *options);
int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value);

int __wrap_bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
			  __u32 value_size, __u32 max_entries,
			  const struct bpf_map_create_opts *options)
{
	int fd;

	if (kernel.refused && !strcmp(name, kernel.refused))
		return -ENOMEM;
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0 && type == BPF_MAP_TYPE_ARRAY &&
	    ftruncate(fd, (off_t)max_entries * ((value_size + 7) & ~7U) + 4096)) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	return 0;
}

int __wrap_bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
				const struct bpf_map_batch_opts *options)
{
	return 0;
}

/* They are empty. */
int __wrap_bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
				const struct bpf_map_batch_opts *options)
{
	*count = 0;
	return fd == THREADS_FD && kernel.threads_error ? kernel.threads_error : -ENOENT;
}

int __wrap_bpf_map_lookup_and_delete_batch(int fd, void *in, void *out, void *keys, void *values,
					   __u32 *count, const struct bpf_map_batch_opts *options)
{
	*count = 0;
	return -ENOENT;
}

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	/* One processor's counter. */
	*(__u64 *)value = 0;
	return 0;
}

static struct ap_live shared;
static struct counters counters;
static __u64 inserted;
static struct live *live;
static struct collector *collector;

static int write_nothing(void *context, enum unwind_map map, __u32 index, const void *value)
{
	return 0;
}

static int set_up(void **state)
{
	static const pid_t target = 1;
	struct live_options options = {
		.target = &target,
		.threads_fd = THREADS_FD,
		.lifetimes_inserted = &inserted,
		.drain_at = DRAIN_AT,
		.counters = &counters,
		.shared = &shared,
		.max_blocks = 1 << 20,
		.records = {
			.shared = &shared,
			.max_records = 1 << 20,
			.stacks = true,
		},
	};
	struct collector_options collector_options = {
		.profile = profile__new(),
		.tables = { .tables = unwind_tables__new(
				    &(struct unwind_writer){ .write = write_nothing }) },
	};

	memset(&kernel, 0, sizeof(kernel));
	memset(&shared, 0, sizeof(shared));
	counters = (struct counters){ .n_cpus = 1 };
	inserted = 0;
	collector = collector__new(&collector_options);
	return !collector || live__new(&options, &live);
}

static int tear_down(void **state)
{
	struct profile *profile = collector__profile(collector);

	live__free(live);
	collector__free(collector);
	profile__free(profile);
	return 0;
}

/* Blocks find no room then, and are counted as such by the programs. */
static void test_a_refused_table_does_not_end_the_recording(void **state)
{
	assert_int_equal(shared.n_tables, 1);
	kernel.refused = "live_table";
	shared.entries = shared.grow_at;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(shared.n_tables, 1);
	/* It is not asked again. */
	kernel.refused = NULL;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(shared.n_tables, 1);
}

static void test_tables_grow_without_being_asked(void **state)
{
	shared.entries = shared.grow_at + 1;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(shared.n_tables, 2);
}

/* Calls are lost then, and no hit waits for more records. */
static void test_refused_records_do_not_end_the_recording(void **state)
{
	__u32 ready = shared.records.ready;

	assert_int_not_equal(ready, 0);
	assert_true(ready < shared.records.max);
	kernel.refused = "record_chunk";
	shared.records.n = ready;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(shared.records.ready, ready);
	assert_int_equal(shared.records.max, ready);
}

static void test_refused_histograms_do_not_end_the_recording(void **state)
{
	__u32 ready = shared.histograms.ready;

	assert_int_not_equal(ready, 0);
	kernel.refused = "histogram_chunk";
	shared.histograms.n = ready;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(shared.histograms.ready, ready);
}

static void test_a_refused_index_does_not_end_the_recording(void **state)
{
	__u32 n = shared.n_index_tables;

	assert_int_not_equal(n, 0);
	kernel.refused = "index_table";
	shared.records.n = 1 << 16;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(shared.n_index_tables, n);
}

/* The programs tell of it once, and the ring buffer may be full then. */
static void test_lifetimes_are_drained_without_being_asked(void **state)
{
	inserted = DRAIN_AT - 1;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(inserted, DRAIN_AT - 1);
	inserted = DRAIN_AT + 5;
	assert_int_equal(live__attend(live, collector), 0);
	assert_int_equal(inserted, 0);
}

/* The map has the threads' calls that have not returned, with the blocks that their reallocs hold. */
static void test_threads_that_cannot_be_read(void **state)
{
	kernel.threads_error = -ENOMEM;
	assert_int_equal(live__collect(live, collector), 0);
	assert_int_equal(counters.unread, 1);
}

static void test_no_threads(void **state)
{
	assert_int_equal(live__collect(live, collector), 0);
	assert_int_equal(counters.unread, 0);
}

static int handle_record(void *context, const void *record, size_t size)
{
	return live__handle_record(live, record, size);
}

static void test_short_records_are_left_alone(void **state)
{
	static const struct {
		__u32 type;
		size_t size;
	} records[] = {
		{ AP_RECORD_PROCESS, sizeof(struct ap_process_record) },
		{ AP_RECORD_LIFETIME, sizeof(struct ap_lifetime_record) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		guarded__each_short(records[i].type, records[i].size, handle_record, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_refused_table_does_not_end_the_recording),
		TEST(test_tables_grow_without_being_asked),
		TEST(test_refused_records_do_not_end_the_recording),
		TEST(test_refused_histograms_do_not_end_the_recording),
		TEST(test_a_refused_index_does_not_end_the_recording),
		TEST(test_lifetimes_are_drained_without_being_asked),
		TEST(test_threads_that_cannot_be_read),
		TEST(test_no_threads),
		TEST(test_short_records_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
