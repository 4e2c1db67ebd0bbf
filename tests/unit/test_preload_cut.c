// SPDX-License-Identifier: GPL-3.0-or-later
/* Cuts of a target that runs: what it publishes while they are made is in a later one. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector.h"
#include "error.h"
#include "preload_engine_internal.h"
#include "preload_internal.h"
#include "profile.h"
#include "record_abi.h"
#include "target.h"
#include "unwind_tables.h"

/* The tests map so much of the shared memory. */
#define MAPPED_BYTES (4 << 20)
#define HASH	     0x123456789abcULL

struct measured {
	struct target target;
	struct preload_engine engine;
	struct inside_header *header; /* mapped */
};

static int write_nothing(void *context, enum unwind_map map, __u32 index, const void *value)
{
	return 0;
}

static int set_up(void **state)
{
	struct preload_options options = {
		.library = "/proc/self/exe",
		.settings = { .mode = INSIDE_RECORD },
	};
	struct collector_options collector_options = {
		.profile = profile__new(),
		.tables = { .tables = unwind_tables__new(
				    &(struct unwind_writer){ .write = write_nothing }) },
		.max_depth = 127,
	};
	struct measured *measured = calloc(1, sizeof(*measured));
	struct error error = { "" };

	assert_non_null(measured);
	measured->engine.target = &measured->target;
	measured->engine.options.stacks = true;
	measured->engine.collector = collector__new(&collector_options);
	assert_non_null(measured->engine.collector);
	if (preload__new(&options, &measured->engine.preload, &error))
		fail_msg("%s", error.text);
	measured->header = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				measured->engine.preload->memory_fd, 0);
	assert_ptr_not_equal(measured->header, MAP_FAILED);
	*state = measured;
	return 0;
}

static int tear_down(void **state)
{
	struct measured *measured = *state;
	struct profile *profile = collector__profile(measured->engine.collector);

	munmap(measured->header, MAPPED_BYTES);
	collector__free(measured->engine.collector);
	profile__free(profile);
	preload_results__free(&measured->engine.at_cut);
	moved_counts__release(&measured->engine.moved);
	free(measured->engine.programs);
	preload__free(measured->engine.preload);
	free(measured);
	return 0;
}

static void *take(struct measured *measured, size_t size, __u64 *offset)
{
	*offset = measured->header->next;
	measured->header->next += (size + INSIDE_PAGE - 1) / INSIDE_PAGE * INSIDE_PAGE;
	return (char *)measured->header + *offset;
}

static void *take_element(struct measured *measured, struct inside_array *array, size_t size)
{
	array->n++;
	return take(measured, INSIDE_FIRST * size, &array->chunks[0]);
}

/* A thread with one counter. */
static struct inside_count *add_counter(struct measured *measured)
{
	struct inside_program *program =
		take_element(measured, &measured->header->programs, sizeof(*program));
	__u64 *offset = take_element(measured, &measured->header->threads, sizeof(*offset));
	struct inside_thread *thread = take(measured, sizeof(*thread), offset);
	struct inside_count *count = take(measured, sizeof(*count), &thread->counts);

	program->pid = getpid();
	program->state = INSIDE_READY;
	thread->program = 1;
	thread->state = INSIDE_READY;
	count->function = AP_MALLOC;
	count->stack = HASH;
	return count;
}

static void add_stack(struct measured *measured)
{
	struct inside_stack *slots =
		take(measured, sizeof(*slots) << INSIDE_FIRST_STACKS, &measured->header->stacks[0]);
	struct ap_stack_record *record = take(measured, sizeof(*record), &slots[7].offset);

	*record = (struct ap_stack_record){ .type = AP_RECORD_STACK, .stack = HASH, .process = 1 };
	slots[7].hash = HASH;
}

static __u64 cut(struct measured *measured)
{
	__u64 cut_ns;

	assert_int_equal(preload_engine__cut(&measured->engine.engine, &cut_ns), 0);
	return collector__attributed(measured->engine.collector);
}

static void test_stack_that_comes_late(void **state)
{
	struct measured *measured = *state;
	struct inside_count *count = add_counter(measured);

	count->calls = 5;
	assert_int_equal(cut(measured), 0);
	add_stack(measured);
	count->calls = 7;
	assert_int_equal(cut(measured), 7);
	count->calls = 8;
	assert_int_equal(cut(measured), 8);
	assert_int_equal(cut(measured), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stack_that_comes_late, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
