// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * case_study [STEPS [MICROSECONDS]]: four functions with a way of their own to use memory, each called
 * once a step, a step being that long; 2000 steps of 1000 without arguments, at most 100000. The
 * steps begin at absolute times, and the first one is 0.
 *
 *   linear_leak     makes a block of 100 bytes and never frees it
 *   leak_until_end  makes a block of 200 bytes; all are freed after the last step and no earlier
 *   bounded_cache   frees the block of 300 bytes that it made 50 steps ago, and makes one
 *   mixture         frees the block of 500 bytes that it made 100 steps ago, if it did; makes one
 *                   in every fourth step; makes ten of 32 bytes, each of which it frees at once;
 *                   makes one of 50 bytes in every tenth step and never frees it
 *
 * With 2000 steps, of the blocks that each function makes:
 *
 *   linear_leak: allocations=2000 bytes=200000 live=2000 live_bytes=200000
 *   leak_until_end: allocations=2000 bytes=400000 frees=2000 freed_bytes=400000
 *   bounded_cache: allocations=2000 bytes=600000 frees=1950 freed_bytes=585000 live=50
 *     live_bytes=15000
 *   mixture: allocations=20700 bytes=900000 frees=20475 freed_bytes=877500 temporary=20000
 *     temporary_bytes=640000 live=225 live_bytes=22500
 *
 * The peak is then in the last step, with the live blocks, those of leak_until_end and one of 32
 * bytes: 4276 blocks, 637532 bytes. Prints such a line for each function, exit
 * status 0.
 */
#include <time.h>
#include "raw.h"

DEFINE_SINK;

#define MAX_STEPS   100000
#define CACHE_STEPS 50
#define KEPT_STEPS  100

struct figures {
	const char *name;
	unsigned long allocations;
	unsigned long bytes;
	unsigned long frees;
	unsigned long freed_bytes;
	unsigned long temporary;
	unsigned long temporary_bytes;
};

static struct figures of_linear_leak = { "linear_leak" };
static struct figures of_leak_until_end = { "leak_until_end" };
static struct figures of_bounded_cache = { "bounded_cache" };
static struct figures of_mixture = { "mixture" };

static void *until_end[MAX_STEPS];
static void *cache[CACHE_STEPS];
static void *kept[KEPT_STEPS];

static void count_made(struct figures *figures, unsigned long bytes)
{
	figures->allocations++;
	figures->bytes += bytes;
}

static void count_freed(struct figures *figures, unsigned long bytes)
{
	figures->frees++;
	figures->freed_bytes += bytes;
}

__attribute__((noinline)) static void linear_leak(void)
{
	sink = malloc(100);
	count_made(&of_linear_leak, 100);
}

__attribute__((noinline)) static void leak_until_end(unsigned long step)
{
	until_end[step] = malloc(200);
	count_made(&of_leak_until_end, 200);
}

__attribute__((noinline)) static void free_at_end(unsigned long steps)
{
	for (unsigned long i = 0; i < steps; i++) {
		free(until_end[i]);
		count_freed(&of_leak_until_end, 200);
	}
}

__attribute__((noinline)) static void bounded_cache(unsigned long step)
{
	void **place = &cache[step % CACHE_STEPS];

	if (*place) {
		free(*place);
		count_freed(&of_bounded_cache, 300);
	}
	*place = malloc(300);
	count_made(&of_bounded_cache, 300);
}

__attribute__((noinline)) static void mixture(unsigned long step)
{
	void **place = &kept[step % KEPT_STEPS];

	if (*place) {
		free(*place);
		*place = NULL;
		count_freed(&of_mixture, 500);
	}
	if (step % 4 == 0) {
		*place = malloc(500);
		count_made(&of_mixture, 500);
	}
	for (int i = 0; i < 10; i++) {
		sink = malloc(32);
		free(sink);
		count_made(&of_mixture, 32);
		count_freed(&of_mixture, 32);
		of_mixture.temporary++;
		of_mixture.temporary_bytes += 32;
	}
	if (step % 10 == 0) {
		sink = malloc(50);
		count_made(&of_mixture, 50);
	}
}

static void say_unless_0(const char *name, unsigned long number)
{
	if (number)
		say_number(name, number, "");
}

static void state(const struct figures *figures)
{
	say(figures->name);
	say(":");
	say_unless_0(" allocations=", figures->allocations);
	say_unless_0(" bytes=", figures->bytes);
	say_unless_0(" frees=", figures->frees);
	say_unless_0(" freed_bytes=", figures->freed_bytes);
	say_unless_0(" temporary=", figures->temporary);
	say_unless_0(" temporary_bytes=", figures->temporary_bytes);
	say_unless_0(" live=", figures->allocations - figures->frees);
	say_unless_0(" live_bytes=", figures->bytes - figures->freed_bytes);
	say("\n");
}

static void sleep_until(const struct timespec *start, unsigned long us)
{
	struct timespec then = *start;

	then.tv_sec += us / 1000000;
	then.tv_nsec += us % 1000000 * 1000;
	if (then.tv_nsec >= 1000000000) {
		then.tv_sec++;
		then.tv_nsec -= 1000000000;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL))
		;
}

int main(int argc, char **argv)
{
	unsigned long steps = number_or(argc > 1 ? argv[1] : NULL, 2000);
	unsigned long us = number_or(argc > 2 ? argv[2] : NULL, 1000);
	struct timespec start;

	if (steps > MAX_STEPS)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned long step = 0; step < steps; step++) {
		sleep_until(&start, step * us);
		linear_leak();
		leak_until_end(step);
		bounded_cache(step);
		mixture(step);
	}
	sleep_until(&start, steps * us);
	free_at_end(steps);
	state(&of_linear_leak);
	state(&of_leak_until_end);
	state(&of_bounded_cache);
	state(&of_mixture);
	return 0;
}
