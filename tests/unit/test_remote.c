// SPDX-License-Identifier: GPL-3.0-or-later
/* Tests that a thread that waits in a system call, and is made to make others, waits on as if nothing had been, also where its tracer
 * is killed at any moment. */
#include "unit.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "hold.h"
#include "proc.h"
#include "remote.h"

/* Longer than it takes to trace a process; all of them wait at the same time. */
#define WAIT_SECONDS 5
#define MOST_POINTS  400

/* In a process that cmocka does not watch. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: in the tracer: does not hold: %s\n", __FILE__,     \
				__LINE__, #condition);                                             \
			_exit(99);                                                                 \
		}                                                                                  \
	} while (0)

/* After so many more of its calls of ptrace(2), of which each begins and ends, this process ends; 0: it does not. */
static unsigned int points_left;

static void pass_point(void)
{
	if (points_left && !--points_left)
		raise(SIGKILL);
}

long __wrap_ptrace(int request, pid_t pid, void *address, void *data);
long __wrap_ptrace(int request, pid_t pid, void *address, void *data)
{
	long result;
	int error;

	pass_point();
	result = syscall(SYS_ptrace, request, pid, address, data);
	error = errno;
	pass_point();
	errno = error;
	return result;
}

static int in_pipe[2];

static bool sleeps_to_the_end(void)
{
	struct timespec length = { .tv_sec = WAIT_SECONDS };
	__u64 begin_ns = clock__now_ns();

	return !nanosleep(&length, NULL) && clock__now_ns() - begin_ns >= WAIT_SECONDS * NS_PER_S;
}

static bool waits_to_the_end(void)
{
	struct timespec end;
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_SECONDS;
	return sem_timedwait(&semaphore, &end) == -1 && errno == ETIMEDOUT;
}

static bool reads_what_comes(void)
{
	char byte;

	return read(in_pipe[0], &byte, 1) == 1 && byte == 'x';
}

enum {
	OTHER_RESULT = 1,
	OTHER_MASK
};

static pid_t start_waiting(bool (*waits)(void))
{
	struct proc_stat stat;
	pid_t pid = fork();

	if (!pid) {
		sigset_t mask;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		if (!waits())
			_exit(OTHER_RESULT);
		sigprocmask(SIG_BLOCK, NULL, &mask);
		_exit(sigismember(&mask, SIGTERM) ? OTHER_MASK : 0);
	}
	assert_true(pid > 0);
	do
		assert_int_equal(proc_stat__read(pid, &stat), 0);
	while (stat.state != 'S' && stat.state != 'Z');
	return pid;
}

/* Interrupts the process once, so that the kernel continues its call, and once more to have it make others. */
static void trace(pid_t pid)
{
	struct remote_code code;
	struct remote *remote;
	struct hold *hold = hold__new();

	CHECK(hold);
	CHECK(hold__add(hold, pid, clock__now_ns() + 10 * NS_PER_S) == 1);
	hold__release(hold, 0);
	hold = hold__new();
	CHECK(hold);
	CHECK(hold__add(hold, pid, clock__now_ns() + 10 * NS_PER_S) == 1);
	CHECK(remote_code__find(pid, &code) == 0);
	CHECK(remote__begin(pid, pid, &code, &remote) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(remote__system_call(remote, SYS_getpid, 0, 0, 0, 0, 0, 0) == pid);
	remote__end(remote);
	hold__release(hold, 0);
}

/* Has a child trace the process up to point number @point, and returns whether it was killed there. */
static bool is_killed_at(pid_t pid, unsigned int point)
{
	pid_t tracer = fork();
	int status;

	if (!tracer) {
		points_left = point;
		trace(pid);
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void check_at_each_point(bool (*waits)(void))
{
	pid_t waiting[MOST_POINTS];
	unsigned int n = 0;
	int n_wrong = 0;

	assert_int_equal(pipe(in_pipe), 0);
	do {
		assert_true(n < MOST_POINTS);
		waiting[n++] = start_waiting(waits);
	} while (is_killed_at(waiting[n - 1], n));
	assert_true(n > 10);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(write(in_pipe[1], "x", 1), 1);
	for (unsigned int i = 0; i < n; i++) {
		int status;

		assert_int_equal(waitpid(waiting[i], &status, 0), waiting[i]);
		if (!status)
			continue;
		print_error("point %u of %u: status %#x\n", i + 1, n, status);
		n_wrong++;
	}
	assert_int_equal(n_wrong, 0);
	close(in_pipe[0]);
	close(in_pipe[1]);
}

static void sleep_goes_on(void **state)
{
	check_at_each_point(sleeps_to_the_end);
}

static void timed_wait_goes_on(void **state)
{
	check_at_each_point(waits_to_the_end);
}

static void read_goes_on(void **state)
{
	check_at_each_point(reads_what_comes);
}

static volatile sig_atomic_t n_signals;

static void note_signal(int number)
{
	n_signals++;
}

static bool gets_signal(void)
{
	struct timespec length = { .tv_sec = WAIT_SECONDS };

	signal(SIGUSR1, note_signal);
	return nanosleep(&length, NULL) == -1 && errno == EINTR && n_signals == 1;
}

/* The process is held when it is about to take a signal. */
static void trace_at_signal(pid_t pid)
{
	struct hold *hold = hold__new();
	struct remote_code code;
	struct remote *remote;
	siginfo_t info;

	CHECK(hold && !ptrace(PTRACE_SEIZE, pid, NULL, NULL) && !kill(pid, SIGUSR1));
	CHECK(!waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT | __WALL) && info.si_status == SIGUSR1);
	CHECK(!hold__borrow(hold, pid, clock__now_ns() + NS_PER_S));
	CHECK(!remote_code__find(pid, &code));
	if (!remote__begin(pid, pid, &code, &remote)) {
		CHECK(remote__system_call(remote, SYS_getpid, 0, 0, 0, 0, 0, 0) == pid);
		remote__end(remote);
	}
	hold__release(hold, 0);
}

static void signal_is_not_lost(void **state)
{
	pid_t pid = start_waiting(gets_signal), tracer = fork();
	int status;

	if (!tracer) {
		trace_at_signal(pid);
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleep_goes_on),
		cmocka_unit_test(timed_wait_goes_on),
		cmocka_unit_test(read_goes_on),
		cmocka_unit_test(signal_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
