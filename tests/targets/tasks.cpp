// SPDX-License-Identifier: GPL-3.0-or-later
// Asynchronous work by 4 threads: 1,000 tasks that go on in whatever thread takes them, among others that are not measured. The
// argument says how they are written: "coroutines", "states" (what C can do, too), or "nested", which are tasks within tasks.
// Each task holds what allocprof has read of it to what it knows itself, and the sums are printed as regions.h does.
#include <allocprof.h>

#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((__noinline__))

enum {
	TASKS = 1000,
	OTHERS = 250,
	THREADS = 4,
	STEPS = 6
};

struct own_figures {
	unsigned long long allocations, reallocations, deallocations, asked, allocated, grown,
		freed, shrunk;

	void *take(size_t size)
	{
		void *block = malloc(size);

		__asm__ volatile("" : "+r"(block));
		allocations++;
		asked += size;
		allocated += size;
		return block;
	}
	void *resize(void *block, size_t before, size_t size)
	{
		block = realloc(block, size);
		reallocations++;
		asked += size;
		(size > before ? grown : shrunk) += size > before ? size - before : before - size;
		return block;
	}
	void give(void *block, size_t size)
	{
		free(block);
		deallocations++;
		freed += size;
	}
};

static std::mutex lock;
static own_figures sums;
static unsigned long long sum_entered;
static int n_wrong, answer_of_all;

// What is in several tasks is added once.
static void judge(const char *what, const own_figures &own, const allocprof_figures &read,
		  int answer, unsigned long long entered, bool is_added = true)
{
	std::lock_guard<std::mutex> guard(lock);
	const unsigned long long *words = (const unsigned long long *)&own;
	bool is_live = answer == ALLOCPROF_READ_LIVE, is_known = answer > 0;

	for (size_t i = 0; i < sizeof(own) / sizeof(*words) && is_added; i++)
		((unsigned long long *)&sums)[i] += words[i];
	sum_entered += entered;
	answer_of_all = answer;
	if (is_known
		    ? read.allocations == own.allocations &&
			      read.reallocations == own.reallocations &&
			      read.deallocations == own.deallocations && read.entered == entered &&
			      read.live == (long long)(own.allocations - own.deallocations) &&
			      (is_live ? read.bytes_allocated == own.allocated + own.grown &&
						 read.bytes_deallocated == own.freed + own.shrunk &&
						 read.bytes_reallocated ==
							 (long long)(own.grown - own.shrunk)
				       : read.bytes_allocated + read.bytes_reallocated == own.asked)
		    : !read.allocations && !read.deallocations && !read.bytes_allocated &&
			      !read.entered)
		return;
	n_wrong++;
	fprintf(stderr,
		"%s: read %llu %llu %llu, %llu bytes, entered %llu; own %llu %llu %llu, %llu bytes, entered %llu\n",
		what, read.allocations, read.reallocations, read.deallocations,
		read.bytes_allocated, read.entered, own.allocations, own.reallocations,
		own.deallocations, own.allocated, entered);
}

// The executor. Its own allocations are in no task.
static std::mutex queue_lock;
static std::condition_variable queue_changed;
static std::deque<std::function<void()>> queue;
static int n_left;

static void push(std::function<void()> work)
{
	std::lock_guard<std::mutex> guard(queue_lock);

	queue.push_back(std::move(work));
	queue_changed.notify_one();
}

static void finish()
{
	std::lock_guard<std::mutex> guard(queue_lock);

	n_left--;
	queue_changed.notify_all();
}

static void work()
{
	for (;;) {
		std::unique_lock<std::mutex> guard(queue_lock);

		queue_changed.wait(guard, [] { return !queue.empty() || !n_left; });
		if (queue.empty())
			return;
		std::function<void()> next = std::move(queue.front());

		queue.pop_front();
		guard.unlock();
		free(malloc(77));
		next();
		free(malloc(78));
	}
}

static void run()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work);
	for (std::thread &thread : threads)
		thread.join();
}

struct job {
	struct promise_type {
		job get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend()
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			abort();
		}
	};
	std::coroutine_handle<promise_type> handle;
};

// Goes on in any thread, maybe before this has returned.
struct elsewhere {
	std::coroutine_handle<> handle = {};
	size_t size;

	bool await_ready()
	{
		return size % 5 == 0;
	}
	void await_suspend(std::coroutine_handle<> suspended)
	{
		push([suspended] { suspended.resume(); });
	}
	size_t await_resume()
	{
		return size;
	}
};

// Does not suspend, after all.
struct not_now {
	bool await_ready()
	{
		return false;
	}
	bool await_suspend(std::coroutine_handle<>)
	{
		free(malloc(79));
		return false;
	}
	void await_resume()
	{
	}
};

struct thrower : not_now {
	bool await_suspend(std::coroutine_handle<>)
	{
		throw 1;
	}
};

// By way of another coroutine, which is resumed in place of the one that waits.
struct in_turn : not_now {
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> suspended)
	{
		push([suspended] { suspended.resume(); });
		return std::noop_coroutine();
	}
};

struct by_operator {
	size_t size;

	elsewhere operator co_await() const
	{
		return { {}, size };
	}
};

static job coroutine(int i)
{
	own_figures own = {};
	unsigned long long entered = 1;
	{
		ALLOCPROF_TASK("task", task);
		void *held = own.take(10 + i);
		size_t size = 10 + i;

		for (int step = 1; step < STEPS; step++) {
			void *block = own.take(step);
			size_t next = co_await task.await(by_operator{ size_t(i + step) });

			entered += next % 5 != 0;
			own.give(block, step);
			held = own.resize(held, size, next + 1);
			size = next + 1;
			co_await task.await(in_turn());
			entered++;
		}
		co_await task.await(not_now());
		entered++;
		own.give(own.take(3), 3);
		try {
			co_await task.await(thrower());
		} catch (int) {
			own.give(own.take(4), 4);
			// How large an exception is, which is freed now, is the library's business.
			task.leave();
			entered++;
		}
		task.enter();
		entered++;
		own.give(held, size);
		allocprof_figures read;
		task.leave();
		int answer = task.read(&read);

		judge("coroutine", own, read, answer, entered);
	}
	finish();
}

static job other(int i)
{
	for (int step = 0; step < STEPS; step++) {
		free(malloc(1000 + i));
		co_await elsewhere{ {}, 1 };
	}
	finish();
}

// A task as C has it: a function for each step.
struct state {
	allocprof_task task;
	own_figures own;
	void *block;
	int i, step;
};

static void go_on(state *state)
{
	ALLOCPROF_ENTER("task", &state->task);
	if (state->block)
		state->own.give(state->block, state->step);
	state->block = state->step < STEPS ? state->own.take(++state->step) : nullptr;
	ALLOCPROF_LEAVE("task", &state->task);
	if (state->block) {
		push([state] { go_on(state); });
		return;
	}
	judge("state", state->own, state->task.figures, state->task.answer, STEPS + 1);
	delete state;
	finish();
}

// Enters from far down, so that its frame is gone when the inner one enters.
NOINLINE static void enter_deep(allocprof_task *task, int depth)
{
	char frame[512];

	memset(frame, depth, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
	if (depth)
		enter_deep(task, depth - 1);
	else
		ALLOCPROF_ENTER("task", task);
	__asm__ volatile("" : : "r"(frame) : "memory");
}

static void nested(int i)
{
	allocprof_task outer = {}, inner = {};
	own_figures own = {}, own_inner = {};

	enter_deep(&outer, 10);
	void *block = own.take(100 + i);

	ALLOCPROF_ENTER("task", &inner);
	own_inner.give(own_inner.take(20), 20);
	ALLOCPROF_LEAVE("task", &inner);
	own.give(block, 100 + i);
	ALLOCPROF_LEAVE("task", &outer);
	// What is in both is in the outer one, and once in the region.
	own.allocations++;
	own.deallocations++;
	own.asked += 20;
	own.allocated += 20;
	own.freed += 20;
	judge("outer", own, outer.figures, outer.answer, 1);
	judge("inner", own_inner, inner.figures, inner.answer, 1, false);
	finish();
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	n_left = TASKS + OTHERS;
	for (int i = 0; i < TASKS; i++) {
		if (!strcmp(way, "coroutines"))
			push([handle = coroutine(i).handle] { handle.resume(); });
		else if (!strcmp(way, "states"))
			push([state = new state{ {}, {}, nullptr, i, 0 }] { go_on(state); });
		else
			push([i] { nested(i); });
	}
	for (int i = 0; i < OTHERS; i++)
		push([handle = other(i).handle] { handle.resume(); });
	run();
	printf("answer %d\n", answer_of_all);
	printf("task entered=%llu allocations=%llu reallocations=%llu deallocations=%llu asked=%llu allocated=%llu grown=%llu "
	       "freed=%llu shrunk=%llu\n",
	       sum_entered, sums.allocations, sums.reallocations, sums.deallocations, sums.asked,
	       sums.allocated, sums.grown, sums.freed, sums.shrunk);
	if (n_wrong)
		fprintf(stderr, "%d of the tasks read other figures than their own\n", n_wrong);
	return n_wrong != 0;
}
