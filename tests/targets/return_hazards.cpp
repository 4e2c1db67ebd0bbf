// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * return_hazards CASE: stacks that end otherwise than by returns, and many threads, around calls of
 * the allocator whose returns somebody may be waiting for. longjmp.c, signals.c and cancel.c have
 * more. The figures are of the calls that this program makes itself; what is not named is 0, and a
 * peak of "any" depends on the order in which threads run.
 *
 *   unwind: allocations=2000 deallocations=2000 bytes_allocated=80000 bytes_deallocated=80000 peak=20
 *     peak_bytes=800
 *   jump: allocations=2000 bytes_allocated=80000 live=2000 live_bytes=80000 peak=2000
 *     peak_bytes=80000
 *   exit: allocations=60 deallocations=50 bytes_allocated=1510 bytes_deallocated=1500 live=10
 *     live_bytes=10 peak=15 peak_bytes=160
 *   cancel: allocations=10020 deallocations=10010 bytes_allocated=500610 bytes_deallocated=500600
 *     live=10 live_bytes=10 temporary=10000 temporary_bytes=500000 peak=11 peak_bytes=70
 *   fork: allocations=2080 deallocations=2040 bytes_allocated=146800 bytes_deallocated=143200 live=40
 *     live_bytes=3600 temporary=2040 temporary_bytes=143200 peak=any peak_bytes=any
 *   deep: allocations=2000 deallocations=2000 bytes_allocated=32000 bytes_deallocated=32000
 *     temporary=1 temporary_bytes=16 peak=2000 peak_bytes=32000
 *   threads: allocations=12864 deallocations=12800 bytes_allocated=513536 bytes_deallocated=512000
 *     live=64 live_bytes=1536 temporary=12800 temporary_bytes=512000 peak=any peak_bytes=any
 *
 * Prints the case and how often it came to its end, exit status 0.
 */
#include <atomic>
#include <csetjmp>
#include <pthread.h>
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

namespace
{
constexpr int DEPTH = 20;

/* A block that unwinding frees. */
struct Held {
	void *block;

	explicit Held(size_t size) : block(malloc(size))
	{
		sink = block;
	}
	~Held()
	{
		free(block);
	}
	Held(const Held &) = delete;
	Held &operator=(const Held &) = delete;
};

pthread_t start(void *(*work)(void *), void *arg = nullptr)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, work, arg))
		_exit(1);
	return thread;
}

void *result_of(pthread_t thread)
{
	void *result = nullptr;

	pthread_join(thread, &result);
	return result;
}

__attribute__((noinline)) int throw_below(int depth)
{
	Held held(40);

	/* The exception itself is an allocation of the C++ library's. */
	if (!depth)
		throw 42;
	return throw_below(depth - 1) + 1;
}

unsigned long unwind()
{
	unsigned long caught = 0;

	for (int i = 0; i < 100; i++) {
		try {
			throw_below(DEPTH - 1);
		} catch (int) {
			caught++;
		}
	}
	return caught;
}

jmp_buf back;

__attribute__((noinline)) int jump_below(int depth)
{
	sink = malloc(40);
	if (!depth)
		longjmp(back, 1);
	int below = jump_below(depth - 1);

	/* Each level is to have a frame. */
	__asm__ volatile("" : : : "memory");
	return below + 1;
}

unsigned long jump()
{
	volatile unsigned long jumps = 0;

	for (volatile int i = 0; i < 100; i = i + 1) {
		if (!setjmp(back))
			jump_below(DEPTH - 1);
		jumps = jumps + 1;
	}
	return jumps;
}

/* One block more, that stays: the C library may allocate before it unwinds, and what is temporary
 * would depend on that. */
__attribute__((noinline)) int exit_below(int depth)
{
	Held held(30);

	if (!depth) {
		sink = malloc(1);
		pthread_exit(&back);
	}
	return exit_below(depth - 1) + 1;
}

void *exit_thread(void *)
{
	exit_below(4);
	return nullptr;
}

unsigned long exit_threads()
{
	unsigned long ended = 0;

	for (int i = 0; i < 10; i++)
		ended += result_of(start(exit_thread)) == &back;
	return ended;
}

std::atomic<bool> sent;

/* Cancelled at some time in the loop; it takes effect behind that. */
void *loop_until_cancelled(void *barrier)
{
	pthread_barrier_wait(static_cast<pthread_barrier_t *>(barrier));
	for (int i = 0; i < 1000; i++)
		Held held(50);
	while (!sent)
		;
	Held held(60);
	sink = malloc(1);
	pthread_testcancel();
	return nullptr;
}

unsigned long cancel_threads()
{
	unsigned long cancelled = 0;
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, nullptr, 2);
	for (int i = 0; i < 10; i++) {
		sent = false;
		pthread_t thread = start(loop_until_cancelled, &barrier);

		pthread_barrier_wait(&barrier);
		pthread_cancel(thread);
		sent = true;
		cancelled += result_of(thread) == PTHREAD_CANCELED;
	}
	return cancelled;
}

void fork_child()
{
	pid_t pid = fork();

	if (!pid) {
		{
			Held held(80);
		}
		sink = malloc(90);
		_exit(0);
	}
	int status;
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(1);
}

void *fork_in_loop(void *)
{
	for (int i = 0; i < 500; i++) {
		{
			Held held(70);
		}
		if (i % 50 == 0)
			fork_child();
	}
	return nullptr;
}

unsigned long fork_threads()
{
	pthread_t threads[4];

	for (pthread_t &thread : threads)
		thread = start(fork_in_loop);
	for (pthread_t thread : threads)
		result_of(thread);
	return 4;
}

__attribute__((noinline)) unsigned long descend(int depth)
{
	Held held(16);

	return depth ? descend(depth - 1) + 1 : 1;
}

unsigned long deep()
{
	return descend(1999);
}

void *loop(void *barrier)
{
	pthread_barrier_wait(static_cast<pthread_barrier_t *>(barrier));
	for (int i = 0; i < 200; i++)
		Held held(40);
	sink = malloc(24);
	return nullptr;
}

unsigned long many_threads()
{
	pthread_t threads[64];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, nullptr, 64);
	for (pthread_t &thread : threads)
		thread = start(loop, &barrier);
	for (pthread_t thread : threads)
		result_of(thread);
	return 64;
}

const struct {
	const char *name;
	unsigned long (*run)();
} cases[] = {
	{ "unwind", unwind },	      { "jump", jump },		{ "exit", exit_threads },
	{ "cancel", cancel_threads }, { "fork", fork_threads }, { "deep", deep },
	{ "threads", many_threads },
};
} // namespace

int main(int argc, char **argv)
{
	for (const auto &one : cases) {
		if (argc != 2 || strcmp(one.name, argv[1]))
			continue;
		unsigned long ends = one.run();

		say(one.name);
		say_number(": ", ends, "\n");
		return 0;
	}
	return 2;
}
