// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * depth MODE DEPTH CALLS [THREADS]: CALLS times malloc and free below DEPTH frames of recursion,
 * without frame pointers. MODE is how a call's stack differs from that of the thread's call before:
 *
 *   same   in nothing
 *   vary   in the innermost quarter of the frames; those outside stay where they are
 *   fresh  in all frames of the recursion
 *
 * Frames that differ do so in their function, their size and their return address, so no memory of
 * the last stack helps with them. vary and fresh have at most 1024 distinct stacks a thread, which
 * come again and again in the same order. Prints "depth: calls N ns T": the time that the calls
 * took.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACKS	    1024
#define MAX_DEPTH   200
#define MAX_THREADS 64

struct walk {
	unsigned long calls;	 /* left to the loop */
	unsigned int outer;	 /* frames that stand while the loop runs */
	unsigned int inner;	 /* frames that each turn of it makes anew */
	unsigned int parity;	 /* of the turn */
	unsigned long path;	 /* bits that choose the functions of the frames */
} __attribute__((aligned(128))); /* no two threads' on a cache line */

typedef void step_function(struct walk *walk, unsigned int left);

static step_function step_0, step_1, step_2, step_3;
static step_function *const steps[] = { step_0, step_1, step_2, step_3 };
static void *volatile sink;

/* Without it the compiler would make a jump of a function's last call, and no frame. */
static inline void keep_frame(void)
{
	__asm__ volatile("" ::: "memory");
}

/*
 * Turns of one parity choose among steps that those of the other do not use, and neighbours differ.
 * Which of the two of a parity comes first is chosen anew in every fourth frame: were it in all,
 * mispredicted jumps would be most of the program's own time.
 */
static inline step_function *next_step(struct walk *walk, unsigned int left)
{
	if (left % 4 == 1)
		walk->path = walk->path * 6364136223846793005ul + 1442695040888963407ul;
	return steps[walk->parity * 2 + ((walk->path >> 63) ^ (left & 1))];
}

/* One function per choice, each with a place of its own that calls malloc and one that recurses. */
#define DEFINE_STEP(name, room_bytes)                                                              \
	static __attribute__((noinline)) void name(struct walk *walk, unsigned int left)           \
	{                                                                                          \
		char room[room_bytes];                                                             \
                                                                                                   \
		__asm__ volatile("" ::"r"(room) : "memory");                                       \
		if (left > 1) {                                                                    \
			next_step(walk, left - 1)(walk, left - 1);                                 \
		} else {                                                                           \
			void *block = malloc(32);                                                  \
                                                                                                   \
			sink = block;                                                              \
			free(block);                                                               \
		}                                                                                  \
		keep_frame();                                                                      \
	}

DEFINE_STEP(step_0, 16)
DEFINE_STEP(step_1, 32)
DEFINE_STEP(step_2, 64)
DEFINE_STEP(step_3, 96)

static __attribute__((noinline)) void loop(struct walk *walk)
{
	for (unsigned long i = 0; i < walk->calls; i++) {
		walk->parity = i & 1;
		walk->path = (i % STACKS) << 53;
		if (walk->inner) {
			next_step(walk, walk->inner)(walk, walk->inner);
		} else {
			void *block = malloc(32);

			sink = block;
			free(block);
		}
	}
	keep_frame();
}

static __attribute__((noinline)) void descend(struct walk *walk, unsigned int left)
{
	char room[24];

	__asm__ volatile("" ::"r"(room) : "memory");
	if (left)
		descend(walk, left - 1);
	else
		loop(walk);
	keep_frame();
}

static void *work(void *arg)
{
	struct walk *walk = arg;

	descend(walk, walk->outer);
	return NULL;
}

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct walk walks[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	unsigned long depth, calls, n;
	unsigned long long start_ns;
	unsigned int inner;

	if (argc != 4 && argc != 5)
		return 2;
	depth = strtoul(argv[2], NULL, 10);
	calls = strtoul(argv[3], NULL, 10);
	n = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	if (depth < 4 || depth > MAX_DEPTH || n > MAX_THREADS)
		return 2;
	if (!strcmp(argv[1], "same"))
		inner = 0;
	else if (!strcmp(argv[1], "vary"))
		inner = depth / 4 > 2 ? depth / 4 : 2;
	else if (!strcmp(argv[1], "fresh"))
		inner = depth;
	else
		return 2;

	start_ns = now_ns();
	for (unsigned long i = 0; i < (n ? n : 1); i++) {
		walks[i].calls = n ? calls / n + (i < calls % n) : calls;
		walks[i].outer = depth - inner;
		walks[i].inner = inner;
		if (!n)
			work(&walks[i]);
		else if (pthread_create(&threads[i], NULL, work, &walks[i]))
			return 1;
	}
	for (unsigned long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("depth: calls %lu ns %llu\n", calls, now_ns() - start_ns);
	return 0;
}
