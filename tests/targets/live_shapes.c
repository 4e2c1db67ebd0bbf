// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * live_shapes CASE: what becomes of blocks, one way per case. The figures are of the calls that this
 * program makes itself; what is not named is 0. A program that it executes makes 3 blocks of 5 bytes
 * and leaves them.
 *
 *   grow: allocations=1 deallocations=1 reallocations=1 bytes_allocated=300 bytes_deallocated=300
 *     bytes_reallocated=200 temporary=2 temporary_bytes=400 peak=1 peak_bytes=300
 *   shrink: allocations=1 reallocations=1 bytes_allocated=300 bytes_deallocated=200
 *     bytes_reallocated=-200 live=1 live_bytes=100 temporary=1 temporary_bytes=300 peak=1
 *     peak_bytes=300
 *   move: allocations=2 deallocations=1 reallocations=2 bytes_allocated=4194368
 *     bytes_deallocated=4194304 bytes_reallocated=4194240 live=1 live_bytes=64 temporary=2
 *     temporary_bytes=5242880 peak=2 peak_bytes=4194368
 *   null: allocations=2 bytes_allocated=88 live=2 live_bytes=88 peak=2 peak_bytes=88
 *   zero: allocations=5 deallocations=2 bytes_allocated=120 bytes_deallocated=120 live=3 temporary=2
 *     temporary_bytes=120 peak=2 peak_bytes=70
 *   fail: allocations=1 deallocations=1 failed=7 bytes_allocated=80 bytes_deallocated=80 temporary=1
 *     temporary_bytes=80 peak=1 peak_bytes=80
 *   fail_aligned: failed=8
 *   aligned: allocations=6 deallocations=2 bytes_allocated=658 bytes_deallocated=130 live=4
 *     live_bytes=528 peak=6 peak_bytes=658
 *   other_thread: allocations=15 deallocations=13 bytes_allocated=400 bytes_deallocated=368 live=2
 *     live_bytes=32 peak=10 peak_bytes=320
 *   thread_ends: allocations=6 bytes_allocated=180 live=6 live_bytes=180 peak=6 peak_bytes=180
 *   thread_key: allocations=2 deallocations=1 bytes_allocated=60 bytes_deallocated=25 live=1
 *     live_bytes=35 peak=2 peak_bytes=60
 *   fork_free: allocations=7 deallocations=2 inherited=7 bytes_allocated=2100 bytes_deallocated=600
 *     live=5 live_bytes=1500 peak=7 peak_bytes=2100
 *   fork_realloc: allocations=1 deallocations=1 reallocations=1 inherited=1 bytes_allocated=700
 *     bytes_deallocated=300 bytes_reallocated=400 live=1 live_bytes=400 temporary=1
 *     temporary_bytes=300 peak=2 peak_bytes=700
 *   fork_own: allocations=7 deallocations=2 inherited=2 bytes_allocated=230 bytes_deallocated=80
 *     live=5 live_bytes=150 peak=6 peak_bytes=210
 *   clone_vm: allocations=4 deallocations=3 bytes_allocated=430 bytes_deallocated=230 live=1
 *     live_bytes=200 temporary=1 temporary_bytes=70 peak=3 peak_bytes=330
 *   vfork_exec: allocations=5 deallocations=1 bytes_allocated=165 bytes_deallocated=50 live=4
 *     live_bytes=115 peak=5 peak_bytes=165
 *   spawn: allocations=4 bytes_allocated=115 live=4 live_bytes=115 peak=4 peak_bytes=115
 *   exec: allocations=12 bytes_allocated=915 live=3 live_bytes=15 discarded=9 discarded_bytes=900
 *     peak=9 peak_bytes=900
 *   exec_thread: allocations=12 bytes_allocated=915 live=3 live_bytes=15 discarded=9
 *     discarded_bytes=900 peak=9 peak_bytes=900
 *   exec_fails: allocations=2 bytes_allocated=200 live=2 live_bytes=200 peak=2 peak_bytes=200
 *   exit: allocations=4 bytes_allocated=100 live=4 live_bytes=100 peak=4 peak_bytes=100
 *   kill: allocations=4 bytes_allocated=100 live=4 live_bytes=100 peak=4 peak_bytes=100
 *   at_exit: allocations=4 deallocations=3 bytes_allocated=100 bytes_deallocated=70 live=1
 *     live_bytes=30 temporary=1 temporary_bytes=40 peak=3 peak_bytes=90
 *   temporary: allocations=23 deallocations=23 failed=1 bytes_allocated=236 bytes_deallocated=236
 *     temporary=17 temporary_bytes=220 peak=1 peak_bytes=20
 *
 * Prints "done", "exec" and "exec_thread" nothing; exit status 0, "kill" dies by SIGKILL. Status 4
 * where a call answered as it should not.
 */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

#define HUGE ((size_t)1 << 60)

static char *executed_args[] = { (char *)"live_shapes", (char *)"executed", NULL };

static void require(int condition)
{
	if (!condition) {
		say("unexpected answer\n");
		_exit(4);
	}
}

static void *made(void *block)
{
	require(block != NULL);
	sink = block;
	return block;
}

static void refused(const void *block)
{
	require(block == NULL);
}

static void wait_for(pid_t pid)
{
	int status;

	require(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

static void grow(void)
{
	void *block = made(malloc(100));

	free(made(realloc(block, 300)));
}

static void shrink(void)
{
	made(realloc(made(malloc(300)), 100));
}

/* The second block keeps the first from growing where it is; so large a block moves by mremap(). */
static void move(void)
{
	void *a = made(malloc(64));
	void *b = made(malloc(64));

	a = made(realloc(a, 1 << 20));
	a = made(reallocarray(a, 4, 1 << 20));
	free(a);
	sink = b;
}

static void null(void)
{
	made(realloc(NULL, 64));
	made(reallocarray(NULL, 3, 8));
	for (int i = 0; i < 3; i++)
		free(NULL);
}

static void zero(void)
{
	refused(realloc(made(malloc(50)), 0));
	made(malloc(0));
	refused(reallocarray(made(malloc(70)), 0, 8));
	made(realloc(NULL, 0));
	made(calloc(0, 8));
}

static void fail(void)
{
	void *block = made(malloc(80));

	refused(realloc(block, HUGE));
	refused(realloc(block, HUGE));
	refused(reallocarray(block, SIZE_MAX / 2, 3));
	refused(malloc(HUGE));
	refused(calloc(SIZE_MAX / 2, 3));
	refused(realloc(NULL, HUGE));
	refused(reallocarray(NULL, SIZE_MAX / 2, 3));
	free(block);
}

static void fail_aligned(void)
{
	/* Where compilers do not see it. */
	volatile size_t no_alignment = SIZE_MAX;
	void *block = NULL;

	/* No power of two, no multiple of a pointer's size, no memory. */
	require(posix_memalign(&block, 24, 30));
	require(posix_memalign(&block, 4, 30));
	require(posix_memalign(&block, 64, HUGE));
	refused(memalign(no_alignment, 10));
	refused(memalign(64, HUGE));
	refused(aligned_alloc(64, HUGE));
	refused(valloc(HUGE));
	refused(pvalloc(SIZE_MAX));
}

static void aligned(void)
{
	void *first, *third;

	require(!posix_memalign(&first, 64, 30));
	made(aligned_alloc(64, 128));
	third = made(memalign(8, 100));
	made(memalign(256, 100));
	made(valloc(100));
	made(pvalloc(200));
	free(first);
	free(third);
}

static void in_thread(void *(*work)(void *), void *arg)
{
	pthread_t thread;

	require(!pthread_create(&thread, NULL, work, arg));
	require(!pthread_join(thread, NULL));
}

static void *exchange(void *arg)
{
	void **blocks = arg;

	for (int i = 0; i < 10; i++)
		free(blocks[i]);
	for (int i = 0; i < 5; i++)
		blocks[i] = made(malloc(16));
	return NULL;
}

static void other_thread(void)
{
	void *blocks[10];

	for (int i = 0; i < 10; i++)
		blocks[i] = made(malloc(32));
	in_thread(exchange, blocks);
	for (int i = 0; i < 3; i++)
		free(blocks[i]);
}

static void *leave_six(void *unused)
{
	for (int i = 0; i < 6; i++)
		made(malloc(30));
	return NULL;
}

static void thread_ends(void)
{
	in_thread(leave_six, NULL);
}

static pthread_key_t key;

static void free_specific(void *block)
{
	free(block);
}

static void *set_specific(void *unused)
{
	pthread_setspecific(key, made(malloc(25)));
	made(malloc(35));
	return NULL;
}

static void thread_key(void)
{
	pthread_key_create(&key, free_specific);
	in_thread(set_specific, NULL);
}

static void fork_free(void)
{
	void *blocks[7];
	pid_t pid;

	for (int i = 0; i < 7; i++)
		blocks[i] = made(malloc(300));
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 7; i++)
			free(blocks[i]);
		_exit(0);
	}
	wait_for(pid);
	free(blocks[0]);
	free(blocks[1]);
}

static void fork_realloc(void)
{
	void *block = made(malloc(300));
	pid_t pid = fork();

	if (!pid) {
		made(realloc(block, 400));
		_exit(0);
	}
	wait_for(pid);
	free(block);
}

static void fork_own(void)
{
	void *of_parent = made(malloc(10)), *blocks[5];
	pid_t pid = fork();

	if (!pid) {
		for (int i = 0; i < 5; i++)
			blocks[i] = made(malloc(40));
		free(blocks[0]);
		free(blocks[1]);
		pid = fork();
		if (!pid) {
			free(blocks[2]);
			free(of_parent);
			_exit(0);
		}
		wait_for(pid);
		_exit(0);
	}
	wait_for(pid);
	made(malloc(20));
}

static int in_same_memory(void *arg)
{
	void **blocks = arg;

	free(blocks[0]);
	blocks[0] = made(malloc(60));
	free(made(malloc(70)));
	return 0;
}

static void clone_vm(void)
{
	static char stack[256 << 10] __attribute__((aligned(16)));
	void *blocks[] = { made(malloc(100)), made(malloc(200)) };

	wait_for(clone(in_same_memory, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
		       blocks));
	free(blocks[0]);
}

static void vfork_exec(void)
{
	void *volatile block = made(malloc(100));
	pid_t pid = vfork();

	if (!pid) {
		block = made(malloc(50));
		execv("/proc/self/exe", executed_args);
		_exit(1);
	}
	wait_for(pid);
	free(block);
}

static void spawn(void)
{
	pid_t pid;

	made(malloc(100));
	require(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, executed_args, environ));
	wait_for(pid);
}

static void *execute(void *unused)
{
	execv("/proc/self/exe", executed_args);
	_exit(1);
}

static void exec(void)
{
	for (int i = 0; i < 9; i++)
		made(malloc(100));
	execute(NULL);
}

static void exec_thread(void)
{
	for (int i = 0; i < 9; i++)
		made(malloc(100));
	in_thread(execute, NULL);
}

static void exec_fails(void)
{
	made(malloc(100));
	execv("/nonexistent/program", executed_args);
	made(malloc(100));
}

static void leave_four(void)
{
	for (int i = 0; i < 4; i++)
		made(malloc(25));
}

static void exit_at_once(void)
{
	leave_four();
	say("done\n");
	_exit(0);
}

static void kill_itself(void)
{
	leave_four();
	kill(getpid(), SIGKILL);
}

static void *until_exit, *until_destructor;

static void free_at_exit(void)
{
	free(until_exit);
	free(made(malloc(40)));
}

__attribute__((destructor)) static void free_in_destructor(void)
{
	free(until_destructor);
}

static void at_exit(void)
{
	until_exit = made(malloc(10));
	until_destructor = made(malloc(20));
	made(malloc(30));
	atexit(free_at_exit);
}

static void temporary(void)
{
	void *a, *b;

	for (int i = 0; i < 10; i++)
		free(made(malloc(20)));
	/* The second one only. */
	for (int i = 0; i < 5; i++) {
		a = made(malloc(1));
		b = made(malloc(2));
		free(b);
		free(a);
	}
	/* What failed is no allocation. */
	a = made(malloc(7));
	free(NULL);
	refused(malloc(HUGE));
	free(a);
	a = made(malloc(11));
	b = made(calloc(1, 3));
	free(a);
	free(b);
}

static void executed(void)
{
	for (int i = 0; i < 3; i++)
		made(malloc(5));
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "grow", grow },
	{ "shrink", shrink },
	{ "move", move },
	{ "null", null },
	{ "zero", zero },
	{ "fail", fail },
	{ "fail_aligned", fail_aligned },
	{ "aligned", aligned },
	{ "other_thread", other_thread },
	{ "thread_ends", thread_ends },
	{ "thread_key", thread_key },
	{ "fork_free", fork_free },
	{ "fork_realloc", fork_realloc },
	{ "fork_own", fork_own },
	{ "clone_vm", clone_vm },
	{ "vfork_exec", vfork_exec },
	{ "spawn", spawn },
	{ "exec", exec },
	{ "exec_thread", exec_thread },
	{ "exec_fails", exec_fails },
	{ "exit", exit_at_once },
	{ "kill", kill_itself },
	{ "at_exit", at_exit },
	{ "temporary", temporary },
	{ "executed", executed },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		cases[i].run();
		say("done\n");
		return 0;
	}
	return 2;
}
