// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The kernel refuses the library of src/inside system calls: the program goes on as without the library, which reports what its counts
 * lack.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "allocprof.h"
#include "inside_host.h"
#include "measured_process.h"

#define N_BLOCKS 300
#define N_MALLOC (2 * N_BLOCKS + 2)
#define N_CALLS	 (N_MALLOC + 3)

/* Shared with the process: system calls that the library has made, and which of them are refused. */
static struct {
	__u32 n, first, last;
	long number; /* 0: whichever it is */
	long result;
} * calls;

static long refuse(long number, const long arguments[6])
{
	if (!calls->number || number == calls->number) {
		__u32 at = __atomic_add_fetch(&calls->n, 1, __ATOMIC_RELAXED);

		if (at >= calls->first && at <= calls->last)
			return calls->result;
	}
	return host__ask_kernel(number, arguments);
}

static void refuse_calls(long number, __u32 first, __u32 last, long result)
{
	memset(calls, 0, sizeof(*calls));
	calls->number = number;
	calls->first = first;
	calls->last = last;
	calls->result = result;
	host__answer_by(refuse);
}

static void *allocate(void *unused)
{
	char *blocks[N_BLOCKS];

	for (int i = 0; i < N_BLOCKS; i++) {
		blocks[i] = inside_malloc(24);
		CHECK(blocks[i]);
		memset(blocks[i], i, 24);
	}
	for (int i = 0; i < N_BLOCKS; i++) {
		CHECK(blocks[i][23] == (char)i);
		inside_free(blocks[i]);
	}
	return NULL;
}

static void work(void)
{
	pthread_t thread;
	void *block;

	ALLOCPROF_BEGIN("work");
	allocate(NULL);
	CHECK(!pthread_create(&thread, NULL, allocate, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!inside_prctl(PR_SET_NAME, "other"));
	block = inside_calloc(1, 10);
	block = inside_realloc(block, 1000);
	block = inside_reallocarray(block, 100, 100);
	CHECK(block && !inside_malloc(SIZE_MAX / 2));
	inside_free(block);
	inside_free(inside_malloc(1));
	ALLOCPROF_END("work");
}

static __u64 sum_of(const __u64 *values, int n)
{
	__u64 sum = 0;

	for (int i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

/* Either nothing is measured, which is said, or all is that could be. */
static void check(const struct measured *measured)
{
	const __u64 *stats = measured->results.stats, *gaps = measured->results.gaps;
	__u64 lost = sum_of(stats + AP_STAT_LOST, AP_LOST_REASONS);
	__u64 n = measured->results.functions[AP_MALLOC].calls, sums[2] = { 0 };

	assert_int_equal(measured->results.n_damaged, 0);
	if (!n) {
		assert_true(!measured->results.n_programs || gaps[INSIDE_GAP_PROGRAMS] ||
			    gaps[INSIDE_GAP_THREADS]);
		return;
	}
	assert_int_equal(n, N_MALLOC);
	if (!stats[AP_STAT_EVENTS])
		return;
	assert_int_equal(stats[AP_STAT_EVENTS], N_CALLS);
	assert_int_equal(preload__read_counts(measured->preload, sum_calls, sums), 0);
	if (sums[0])
		assert_int_equal(sums[0] + lost, N_CALLS);
	else
		assert_true(stats[AP_STAT_ALLOCATIONS] + stats[AP_STAT_FAILED] + lost +
				    sum_of(stats + AP_STAT_UNTRACKED, AP_UNTRACKED_REASONS) ==
			    N_CALLS);
	assert_true(stats[AP_STAT_FREES] + stats[AP_STAT_DROPPED] == stats[AP_STAT_ALLOCATIONS]);
}

/* Refuses one in @step of the system calls that are made where none is refused: only that, or all that follow, too. */
static void refuse_each(const struct inside_settings *settings, __u32 step, bool all)
{
	__u32 n = 1;

	for (__u32 first = 0; first <= n; first += step) {
		struct measured measured;

		refuse_calls(0, first, all && first ? UINT32_MAX : first, -EPERM);
		measured__new(settings, &measured);
		measured__run(&measured, work);
		assert_int_equal(preload__read(measured.preload, &measured.results), 0);
		check(&measured);
		measured__finish(&measured);
		if (!first)
			n = calls->n;
	}
}

static void test_one_refused_call(void **state)
{
	const struct inside_settings settings = {
		.mode = INSIDE_LIVE, .stacks = 1, .regions = 1, .wait_ms = 1
	};

	refuse_each(&settings, 1, false);
}

/* As where a filter was set before the program began, which the library cannot know. */
static void test_no_call_is_permitted_any_more(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = {
			.mode = mode, .stacks = 1, .regions = 1, .wait_ms = 1
		};

		print_message("mode %d\n", mode);
		refuse_each(&settings, 8, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_refused_call),
		cmocka_unit_test(test_no_call_is_permitted_any_more),
	};

	calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
