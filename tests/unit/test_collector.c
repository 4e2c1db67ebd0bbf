// SPDX-License-Identifier: GPL-3.0-or-later
#include "guarded.h"
#include "unit.h"

#include <string.h>

#include "abi.h"
#include "bpf_maps.h"
#include "collector.h"
#include "profile.h"
#include "record_abi.h"
#include "unwind_tables.h"

static int write_nothing(void *context, enum unwind_map map, __u32 index, const void *value)
{
	return 0;
}

static void read_no_mappings(void *context)
{
}

static int set_up(void **state)
{
	struct collector_options options = {
		.profile = profile__new(),
		.tables = { .tables = unwind_tables__new(
				    &(struct unwind_writer){ .write = write_nothing }) },
		.max_depth = 127,
		.refresh_mappings = read_no_mappings,
	};

	*state = collector__new(&options);
	return !*state;
}

static int tear_down(void **state)
{
	struct profile *profile = collector__profile(*state);

	collector__free(*state);
	profile__free(profile);
	return 0;
}

/* The programs request a drain once, when they have inserted drain_at counters. If the ring buffer is full then, the
 * request is lost. */
static void test_counters_are_drained_without_a_request(void **state)
{
	__u64 inserted = 7;
	struct count_maps maps = { .inserted = &inserted, .drain_at = 8 };

	assert_false(count_maps__want_drain(&maps));
	inserted = 8;
	assert_true(count_maps__want_drain(&maps));
	inserted = 100;
	assert_true(count_maps__want_drain(&maps));
}

static void test_counters_are_drained_on_request(void **state)
{
	__u64 inserted = 0;
	struct count_maps maps = { .inserted = &inserted, .drain_at = 8 };
	const __u32 other = AP_RECORD_STACK, request = AP_RECORD_DRAIN;

	count_maps__handle_record(&maps, &other, sizeof(other));
	count_maps__handle_record(&maps, &request, sizeof(request) - 1);
	assert_false(count_maps__want_drain(&maps));
	count_maps__handle_record(&maps, &request, sizeof(request));
	assert_true(count_maps__want_drain(&maps));
}

static void tell(struct collector *collector, __u32 event, __u32 id, __u32 pid, __u64 time_ns)
{
	struct ap_process_record record = {
		.type = AP_RECORD_PROCESS,
		.event = event,
		.id = id,
		.pid = pid,
		.time_ns = time_ns,
		.comm = "program",
	};

	assert_int_equal(collector__handle_record(collector, &record, sizeof(record)), 0);
}

/* What other processes with the same pid map earlier or later is none of the target's. */
static void test_processes_that_ended_are_not_followed(void **state)
{
	struct collector *collector = *state;

	assert_false(collector__is_followed(collector, 100, 15));
	tell(collector, AP_PROCESS_SEEDED, 1, 100, 10);
	tell(collector, AP_PROCESS_EXECED, 2, 100, 12);
	assert_true(collector__is_followed(collector, 100, 15));
	tell(collector, AP_PROCESS_EXITED, 2, 100, 20);
	/* It is heard of that afterwards. */
	assert_true(collector__is_followed(collector, 100, 15));
	assert_false(collector__is_followed(collector, 100, 21));
	tell(collector, AP_PROCESS_FORKED, 3, 100, 30);
	assert_true(collector__is_followed(collector, 100, 31));
	assert_false(collector__is_followed(collector, 100, 29));
	assert_true(collector__is_followed(collector, 100, 15));
	/* The end of this one was not reported. */
	tell(collector, AP_PROCESS_FORKED, 4, 100, 40);
	tell(collector, AP_PROCESS_EXITED, 4, 100, 50);
	assert_true(collector__is_followed(collector, 100, 39));
	assert_true(collector__is_followed(collector, 100, 50));
	assert_false(collector__is_followed(collector, 100, 51));
	assert_false(collector__is_followed(collector, 100, 29));
	assert_true(collector__is_followed(collector, 100, 12));
}

static int handle_record(void *context, const void *record, size_t size)
{
	return collector__handle_record(context, record, size);
}

/* Those that are shorter than their type is. */
static void test_short_records_are_left_alone(void **state)
{
	static const struct {
		__u32 type;
		size_t size;
	} records[] = {
		{ AP_RECORD_PROCESS, sizeof(struct ap_process_record) },
		{ AP_RECORD_MODULE, sizeof(struct ap_module_record) },
		{ AP_RECORD_STACK, sizeof(struct ap_stack_record) },
		{ AP_RECORD_COUNT, sizeof(struct ap_count_record) },
		{ AP_RECORD_DUMP, sizeof(struct ap_dump_record) },
	};
	struct collector *collector = *state;

	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		guarded__each_short(records[i].type, records[i].size, handle_record, collector);
	assert_int_equal(collector__settle(collector, SIZE_MAX), 0);
	assert_int_equal(collector__profile(collector)->n_processes, 0);
	assert_int_equal(collector__profile(collector)->n_modules, 0);
	assert_int_equal(collector__profile(collector)->n_stacks, 0);
	assert_int_equal(collector__profile(collector)->n_counts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_are_drained_without_a_request),
		cmocka_unit_test(test_counters_are_drained_on_request),
		cmocka_unit_test_setup_teardown(test_processes_that_ended_are_not_followed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_short_records_are_left_alone, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
