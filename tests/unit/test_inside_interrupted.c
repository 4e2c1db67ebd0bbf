// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Calls of the library of src/inside that a signal's handler interrupts, which calls the allocator, too, and then returns or leaves
 * by a jump: what interrupts what counts in memory of its own, and nothing stays in use for ever.
 */
#include "unit.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "inside_host.h"
#include "measured_process.h"
#include "process.h"

#define N_JUMPS 200
#define N_AFTER 300

/* The signal comes when the library has asked the kernel so often; 0: it does not. */
static int n_until;

static long raise_signal(long number, const long arguments[6])
{
	if (n_until && !--n_until)
		raise(SIGUSR1);
	return host__ask_kernel(number, arguments);
}

/* The process counts here what it does; the parent shares the memory. */
static struct {
	__u64 n_calls, n_jumps;
} * done;

static void call_allocator(void)
{
	done->n_calls++;
	inside_free(inside_malloc(16));
}

static sigjmp_buf before;

static void leave_by_jump(int signal)
{
	call_allocator();
	done->n_jumps++;
	siglongjmp(before, 1);
}

static void handle(int flags)
{
	static char stack[1 << 16];
	const stack_t signals = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = leave_by_jump, .sa_flags = flags };

	CHECK(!sigaltstack(&signals, NULL) && !sigaction(SIGUSR1, &action, NULL));
	host__answer_by(raise_signal);
}

/* Maps code, so that the library asks the kernel for the code of the next call's frames, and the signal finds it at work. */
static void change_code(void)
{
	static void *page;

	if (!page)
		page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && !inside_mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static __attribute__((noinline)) void call_at(int depth)
{
	volatile char room[256];

	room[0] = depth;
	if (depth)
		call_at(depth - 1);
	else
		call_allocator();
	room[1] = room[0];
}

static __u64 lost_of(const __u64 *stats)
{
	__u64 n = 0;

	for (int i = 0; i < AP_LOST_REASONS; i++)
		n += stats[AP_STAT_LOST + i];
	return n;
}

/* Leaves calls at one of the system calls that they make, if they make so many. To look for what was left takes system calls, too,
 * so it is not done at each call, but before long. */
static void jump_out(int n_depths)
{
	__u64 n_lost;

	for (volatile int i = 0; i < N_JUMPS; i++) {
		change_code();
		if (!sigsetjmp(before, 1)) {
			n_until = 1 + i % 5;
			call_at(i % n_depths);
		}
		n_until = 0;
	}
	host__answer_by(NULL);
	for (int i = 0; i < N_AFTER / 2; i++)
		call_at(0);
	n_lost = lost_of(self->shared->stats);
	for (int i = 0; i < N_AFTER / 2; i++)
		call_at(0);
	CHECK(lost_of(self->shared->stats) == n_lost);
}

static void jump_from_one_depth(void)
{
	handle(0);
	jump_out(1);
}

static void jump_from_many_depths(void)
{
	handle(0);
	jump_out(24);
}

static void jump_from_other_stack(void)
{
	handle(SA_ONSTACK);
	jump_out(24);
}

static void test_what_a_jump_left_is_used_again(void **state)
{
	void (*const programs[])(void) = { jump_from_one_depth, jump_from_many_depths,
					   jump_from_other_stack };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		for (int mode = INSIDE_RECORD; mode <= INSIDE_LIVE; mode++) {
			const struct inside_settings settings = { .mode = mode, .stacks = 1 };
			struct measured measured;
			const __u64 *stats = measured.results.stats;
			__u64 sums[2] = { 0 };

			print_message("program %zu, mode %d\n", i, mode);
			memset(done, 0, sizeof(*done));
			measure(&settings, programs[i], &measured);
			assert_true(done->n_jumps > 10);
			assert_int_equal(measured.results.functions[AP_MALLOC].calls,
					 done->n_calls);
			assert_int_equal(preload__read_counts(measured.preload, sum_calls, sums),
					 0);
			assert_true(stats[AP_STAT_EVENTS] >= done->n_calls - done->n_jumps);
			if (mode == INSIDE_RECORD)
				assert_int_equal(sums[0] + lost_of(stats), stats[AP_STAT_EVENTS]);
			assert_true(measured.results.n_threads <= THREAD_CLAIMS);
			measured__finish(&measured);
		}
	}
}

/* Frames further out that a handler has interrupted: their calls may go on. */
#define N_INTERRUPTED 3

static __attribute__((noinline)) void interrupt_calls(struct claim *claims, __u32 n,
						      void (*handler)(void))
{
	for (__u32 i = 0; i < n; i++)
		self->claims[i] = claim__sign(&claims[i], __builtin_frame_address(0));
	handler();
	for (__u32 i = 0; i < n; i++) {
		CHECK(self->claims[i] == (__u64)&claims[i]);
		self->claims[i] = 0;
		claim__end(&claims[i]);
	}
}

static void *block;

static void call_allocator_and_move(void)
{
	call_allocator();
	block = inside_realloc(block, 3000);
	call_allocator();
}

static void interrupt_more_and_more(void)
{
	struct claim claims[N_INTERRUPTED];

	block = inside_malloc(16);
	for (__u32 n = 0; n <= N_INTERRUPTED; n++)
		interrupt_calls(claims, n, call_allocator_and_move);
	inside_free(block);
}

/* Handlers that each interrupt another one would need memory without end. */
static void test_what_interrupts_too_many_is_lost(void **state)
{
	for (int mode = INSIDE_RECORD; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode, .stacks = 1 };
		struct measured measured;
		const __u64 *stats = measured.results.stats;
		__u64 sums[2] = { 0 };

		measure(&settings, interrupt_more_and_more, &measured);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, 9);
		assert_int_equal(stats[AP_STAT_EVENTS], 13);
		assert_int_equal(stats[AP_STAT_LOST + AP_LOST_NO_SCRATCH], 3);
		assert_int_equal(stats[AP_STAT_DROPPED], mode == INSIDE_LIVE);
		assert_int_equal(preload__read_counts(measured.preload, sum_calls, sums), 0);
		assert_int_equal(sums[0], mode == INSIDE_RECORD ? 10 : 0);
		/* Two stand-ins, one for each number of calls that are interrupted. */
		assert_int_equal(measured.results.n_threads, 2);
		measured__finish(&measured);
	}
}

static long refused_number;

static long refuse(long number, const long arguments[6])
{
	return number == refused_number ? -EPERM : host__ask_kernel(number, arguments);
}

/* Returns the value that @claim has after another call of the thread. */
static __u64 claim_after_call(__u64 claim)
{
	__u64 after;

	self->claims[0] = claim;
	self->n_to_pass = 0;
	call_allocator();
	after = self->claims[0];
	self->claims[0] = 0;
	return after;
}

static void find_calls_that_cannot_go_on(void)
{
	__u64 frame[2] = { 0, 1 };
	struct claim claim;
	__u64 address = claim__sign(&claim, frame);

	call_allocator();
	CHECK(claim_after_call(address) == address);
	/* Nobody knows, where the target forbids the library to look. */
	host__answer_by(refuse);
	refused_number = __NR_process_vm_readv;
	CHECK(claim_after_call(16) == 16);
	refused_number = __NR_rt_sigprocmask;
	CHECK(claim_after_call(16) == 16);
	host__answer_by(NULL);
	/* Its stack is gone. */
	CHECK(!claim_after_call(16));
	/* Another function has returned to its frame's place, or has its own variables there. */
	frame[1]++;
	self->claims[1] = self->claims[2] = self->claims[3] = address;
	CHECK(!claim_after_call(address));
	CHECK(!self->claims[1] && !self->claims[2] && !self->claims[3]);
	claim.frame = (const __u64 *)8;
	self->claims[1] = self->claims[2] = self->claims[3] = address;
	CHECK(!claim_after_call(address));
	claim__end(&claim);
	self->claims[1] = self->claims[2] = self->claims[3] = address;
	CHECK(!claim_after_call(address));
}

static void test_calls_that_cannot_go_on(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_RECORD };
	struct measured measured;

	memset(done, 0, sizeof(*done));
	measure(&settings, find_calls_that_cannot_go_on, &measured);
	assert_int_equal(measured.results.stats[AP_STAT_EVENTS], done->n_calls);
	measured__finish(&measured);
}

/* A thread that is busy keeps its name and its share, and gets another stand-in with its next name. */
static void rename_while_busy(void)
{
	struct claim claim;

	call_allocator();
	interrupt_calls(&claim, 1, call_allocator);
	self->claims[0] = claim__sign(&claim, __builtin_frame_address(0));
	CHECK(!inside_prctl(PR_SET_NAME, "while busy"));
	CHECK(memcmp(self->shared->comm, "while busy", 10) != 0);
	self->claims[0] = 0;
	CHECK(!inside_prctl(PR_SET_NAME, "idle"));
	CHECK(!memcmp(self->shared->comm, "idle", 5));
	interrupt_calls(&claim, 1, call_allocator);
}

static void test_busy_thread_keeps_its_name(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE, .stacks = 1 };
	struct measured measured;

	measure(&settings, rename_while_busy, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, 3);
	assert_int_equal(lost_of(measured.results.stats), 0);
	assert_int_equal(measured.results.n_threads, 4);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_jump_left_is_used_again),
		cmocka_unit_test(test_what_interrupts_too_many_is_lost),
		cmocka_unit_test(test_calls_that_cannot_go_on),
		cmocka_unit_test(test_busy_thread_keeps_its_name),
	};

	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
