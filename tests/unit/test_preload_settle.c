// SPDX-License-Identifier: GPL-3.0-or-later
/* A reading waits for entries that processes are writing, and for nothing that nobody completes. This process is the one
 * that is measured. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "preload_engine_internal.h"
#include "preload_internal.h"
#include "target.h"

/* The tests map so much of the shared memory. */
#define MAPPED_BYTES (1 << 20)

struct measured {
	struct target target; /* the command has ended, or it is this process */
	struct preload_engine engine;
	struct inside_header *header; /* mapped */
	struct inside_program *programs;
	__u64 *threads;
	struct inside_refused *refused;
};

static void *take_chunk(struct measured *measured, struct inside_array *array, size_t size)
{
	__u64 offset = measured->header->next;

	array->chunks[0] = offset;
	measured->header->next +=
		(INSIDE_FIRST * size + INSIDE_PAGE - 1) / INSIDE_PAGE * INSIDE_PAGE;
	return (char *)measured->header + offset;
}

static int set_up(void **state)
{
	struct preload_options options = {
		.library = "/proc/self/exe",
		.settings = { .mode = INSIDE_COUNT },
	};
	struct measured *measured = calloc(1, sizeof(*measured));
	struct error error = { "" };

	assert_non_null(measured);
	measured->target.waited = true;
	measured->engine.target = &measured->target;
	if (preload__new(&options, &measured->engine.preload, &error))
		fail_msg("%s", error.text);
	measured->header = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				measured->engine.preload->memory_fd, 0);
	assert_ptr_not_equal(measured->header, MAP_FAILED);
	measured->programs =
		take_chunk(measured, &measured->header->programs, sizeof(*measured->programs));
	measured->threads =
		take_chunk(measured, &measured->header->threads, sizeof(*measured->threads));
	measured->refused =
		take_chunk(measured, &measured->header->refused, sizeof(*measured->refused));
	*state = measured;
	return 0;
}

static int tear_down(void **state)
{
	struct measured *measured = *state;

	munmap(measured->header, MAPPED_BYTES);
	preload__free(measured->engine.preload);
	free(measured);
	return 0;
}

/* A program that is complete, or is being written. */
static void add_program(struct measured *measured, enum inside_state ready)
{
	struct inside_program *program = &measured->programs[measured->header->programs.n++];

	program->pid = getpid();
	program->state = ready;
}

/* Checks what a reading finds, and returns how long it took. */
static __u64 read_ns(struct measured *measured, __u64 n_unfinished)
{
	__u64 begin_ns = clock__now_ns();
	struct preload_results results;

	assert_int_equal(preload_engine__read(&measured->engine, &results), 0);
	assert_int_equal(results.n_unfinished, n_unfinished);
	assert_int_equal(results.n_damaged, 0);
	preload_results__free(&results);
	return clock__now_ns() - begin_ns;
}

#define A_MOMENT_US 100000

static void *complete_program(void *context)
{
	struct measured *measured = context;

	usleep(A_MOMENT_US);
	__atomic_store_n(&measured->programs[0].state, INSIDE_READY, __ATOMIC_RELEASE);
	return NULL;
}

/* It is the only one: nothing but the number that is in it says that its process runs. */
static void test_program_is_awaited(void **state)
{
	struct measured *measured = *state;
	pthread_t thread;

	add_program(measured, INSIDE_EMPTY);
	assert_int_equal(pthread_create(&thread, NULL, complete_program, measured), 0);
	read_ns(measured, 0);
	pthread_join(thread, NULL);
}

/* Its process has not written its number yet. */
static void test_program_of_the_command_is_awaited(void **state)
{
	struct measured *measured = *state;
	pthread_t thread;

	add_program(measured, INSIDE_EMPTY);
	measured->programs[0].pid = 0;
	measured->target = (struct target){ .pid = getpid() };
	assert_int_equal(pthread_create(&thread, NULL, complete_program, measured), 0);
	read_ns(measured, 0);
	pthread_join(thread, NULL);
}

static void *complete_second_thread(void *context)
{
	struct measured *measured = context;

	usleep(A_MOMENT_US);
	__atomic_store_n(&measured->threads[1], INSIDE_RETIRED, __ATOMIC_RELEASE);
	return NULL;
}

/* The second reading would need as long as the first; a third one waits for what is new. */
static void test_entry_of_a_killed_process_is_awaited_once(void **state)
{
	struct measured *measured = *state;
	pthread_t thread;

	add_program(measured, INSIDE_READY);
	measured->header->threads.n = 1;
	assert_true(read_ns(measured, 1) >= 2 * NS_PER_S);
	assert_true(read_ns(measured, 1) < 2 * NS_PER_S);
	measured->header->threads.n = 2;
	assert_int_equal(pthread_create(&thread, NULL, complete_second_thread, measured), 0);
	read_ns(measured, 1);
	pthread_join(thread, NULL);
}

static void *begin_command(void *context)
{
	struct measured *measured = context;

	usleep(A_MOMENT_US);
	__atomic_fetch_add(&measured->header->n_begun, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* In its dynamic linker it has no entry. After the end it begins without one. */
static void test_command_is_awaited_once(void **state)
{
	struct measured *measured = *state;
	pthread_t thread;

	measured->engine.command_refusal = -1;
	measured->target = (struct target){
		.pid = getpid(),
		.launched = true,
		.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0),
	};
	assert_true(measured->target.pidfd >= 0);
	assert_int_equal(pthread_create(&thread, NULL, begin_command, measured), 0);
	assert_true(read_ns(measured, 0) < 2 * NS_PER_S);
	pthread_join(thread, NULL);
	measured->header->n_begun = 0;
	assert_true(read_ns(measured, 0) >= 2 * NS_PER_S);
	assert_true(read_ns(measured, 0) < 2 * NS_PER_S);
	close(measured->target.pidfd);
}

/* A process that gets none has gone on without it. */
static void test_chunk_without_memory_is_not_awaited(void **state)
{
	struct measured *measured = *state;

	add_program(measured, INSIDE_READY);
	for (int i = 0; i < INSIDE_FIRST; i++)
		measured->threads[i] = INSIDE_RETIRED;
	measured->header->threads.n = INSIDE_FIRST + 10;
	assert_true(read_ns(measured, 10) < 2 * NS_PER_S);
}

/* As await_answer() of src/inside does. */
static void *await_answer(void *context)
{
	struct measured *measured = context;

	while (__atomic_load_n(&measured->refused[0].answer, __ATOMIC_ACQUIRE) == INSIDE_NO_ANSWER)
		usleep(1000);
	__atomic_store_n(&measured->threads[0], INSIDE_RETIRED, __ATOMIC_RELEASE);
	return NULL;
}

/* The process goes on with its entry when its other thread has its answer. */
static void test_answers_go_on(void **state)
{
	struct measured *measured = *state;
	pthread_t thread;

	add_program(measured, INSIDE_READY);
	measured->header->threads.n = measured->header->refused.n = 1;
	measured->refused[0] = (struct inside_refused){
		.state = INSIDE_READY,
		.reason = INSIDE_REFUSES_STATIC,
		.pid = getpid(),
	};
	assert_int_equal(pthread_create(&thread, NULL, await_answer, measured), 0);
	read_ns(measured, 0);
	pthread_join(thread, NULL);
	assert_int_equal(measured->refused[0].answer, INSIDE_NOT_BY_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_program_is_awaited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_program_of_the_command_is_awaited, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_entry_of_a_killed_process_is_awaited_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_command_is_awaited_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_chunk_without_memory_is_not_awaited, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_answers_go_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
