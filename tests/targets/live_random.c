// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * live_random SEED THREADS OPS: each of THREADS threads does OPS things with memory, chosen by a
 * generator that starts from SEED and the thread's number: allocates by each function, reallocates,
 * fails, frees. It is called from 40 functions with 8 ways below each. Each thread has a table of
 * blocks of its own; through another one blocks go from thread to thread, which reallocate and free
 * what others made. Half of what is in the tables at the end stays live.
 *
 * What a thread asks for depends on the arguments alone, but for blocks that it found in the shared
 * table. All figures are exact for the run: every block carries its size, its maker and its number,
 * and the program adds up what becomes of it. They are printed in one line as name=value, those that
 * are 0 left out; the peak with one thread only, where there is no doubt about it. They leave out
 * what starting threads takes. At most 64 threads. Exit status 0, 4 where a call answered as it
 * should not.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "raw.h"

DEFINE_SINK;

#define MAX_THREADS 64
#define OWN_BLOCKS  64
#define SHARED	    128
#define SITES	    40

/* At the start of every block. */
struct tag {
	size_t bytes;
	unsigned long maker;
	unsigned long number; /* how many its maker had made, with this one */
};

struct figures {
	unsigned long allocations;
	unsigned long deallocations;
	unsigned long reallocations;
	unsigned long failed;
	unsigned long bytes_allocated;
	unsigned long bytes_deallocated;
	unsigned long temporary;
	unsigned long temporary_bytes;
};

/* Of one thread, and the main thread's in the end. */
struct worker {
	pthread_t thread;
	unsigned long id;
	uint64_t random;
	unsigned long made;
	struct tag *own[OWN_BLOCKS];
	struct figures figures;
};

static struct worker workers[MAX_THREADS + 1];
static struct tag *_Atomic shared[SHARED];
static unsigned long n_threads, n_ops;

/* With one thread. */
static long live, live_bytes, peak, peak_bytes;

typedef void (*action_fn)(struct worker *w);

static uint64_t next_random(struct worker *w)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static size_t random_bytes(struct worker *w)
{
	size_t room = next_random(w) % 50 ? 1000 : 200000;

	return sizeof(struct tag) + next_random(w) % room;
}

static void require(int condition)
{
	if (!condition) {
		say("unexpected answer\n");
		_exit(4);
	}
}

static void count_live(long blocks, long bytes)
{
	if (n_threads != 1)
		return;
	live += blocks;
	live_bytes += bytes;
	if (live_bytes > peak_bytes) {
		peak_bytes = live_bytes;
		peak = live;
	}
}

static void sign(struct worker *w, struct tag *block, size_t bytes)
{
	require(block != NULL);
	*block = (struct tag){ .bytes = bytes, .maker = w->id, .number = ++w->made };
	count_live(1, bytes);
}

static struct tag *made(struct worker *w, void *block, size_t bytes)
{
	sign(w, block, bytes);
	w->figures.allocations++;
	w->figures.bytes_allocated += bytes;
	return block;
}

static void ends(struct worker *w, const struct tag *tag)
{
	count_live(-1, -(long)tag->bytes);
	if (tag->maker == w->id && tag->number == w->made) {
		w->figures.temporary++;
		w->figures.temporary_bytes += tag->bytes;
	}
}

static void count_freed(struct worker *w, const struct tag *tag)
{
	ends(w, tag);
	w->figures.deallocations++;
	w->figures.bytes_deallocated += tag->bytes;
}

__attribute__((noinline)) static void release(struct worker *w, struct tag *block)
{
	if (block)
		count_freed(w, block);
	free(block);
}

/* A third of the blocks goes to the shared table. Whoever was in the place is freed. */
static void keep(struct worker *w, struct tag *block)
{
	struct tag **place = &w->own[next_random(w) % OWN_BLOCKS];
	struct tag *old = *place;

	if (next_random(w) % 3 == 0)
		old = atomic_exchange(&shared[next_random(w) % SHARED], block);
	else
		*place = block;
	release(w, old);
}

__attribute__((noinline)) static void by_malloc(struct worker *w)
{
	size_t bytes = random_bytes(w);

	keep(w, made(w, malloc(bytes), bytes));
}

__attribute__((noinline)) static void by_calloc(struct worker *w)
{
	size_t n = 1 + random_bytes(w) / 8;

	keep(w, made(w, calloc(n, 8), n * 8));
}

__attribute__((noinline)) static void by_realloc(struct worker *w)
{
	size_t bytes = random_bytes(w);

	keep(w, made(w, realloc(NULL, bytes), bytes));
}

__attribute__((noinline)) static void by_reallocarray(struct worker *w)
{
	size_t n = 1 + random_bytes(w) / 8;

	keep(w, made(w, reallocarray(NULL, n, 8), n * 8));
}

__attribute__((noinline)) static void by_posix_memalign(struct worker *w)
{
	size_t bytes = random_bytes(w);
	void *block = NULL;

	require(!posix_memalign(&block, (size_t)8 << next_random(w) % 8, bytes));
	keep(w, made(w, block, bytes));
}

__attribute__((noinline)) static void by_aligned_alloc(struct worker *w)
{
	size_t bytes = (random_bytes(w) + 63) / 64 * 64;

	keep(w, made(w, aligned_alloc(64, bytes), bytes));
}

__attribute__((noinline)) static void by_memalign(struct worker *w)
{
	size_t bytes = random_bytes(w);

	keep(w, made(w, memalign((size_t)8 << next_random(w) % 8, bytes), bytes));
}

__attribute__((noinline)) static void by_pages(struct worker *w)
{
	size_t bytes = random_bytes(w);
	struct tag *block = next_random(w) % 2 ? valloc(bytes) : pvalloc(bytes);

	keep(w, made(w, block, bytes));
}

static struct tag *changed(struct worker *w, struct tag *block, int is_array)
{
	struct tag old = *block;
	size_t bytes = random_bytes(w) & ~(size_t)7;

	/* As the events have it: the old block has ended when the new one comes. */
	ends(w, &old);
	block = is_array ? reallocarray(block, bytes / 8, 8) : realloc(block, bytes);
	sign(w, block, bytes);
	w->figures.reallocations++;
	if (bytes > old.bytes)
		w->figures.bytes_allocated += bytes - old.bytes;
	else
		w->figures.bytes_deallocated += old.bytes - bytes;
	return block;
}

__attribute__((noinline)) static void change_own(struct worker *w)
{
	struct tag **place = &w->own[next_random(w) % OWN_BLOCKS];

	if (*place)
		*place = changed(w, *place, next_random(w) % 3 == 0);
}

__attribute__((noinline)) static void change_shared(struct worker *w)
{
	struct tag *block = atomic_exchange(&shared[next_random(w) % SHARED], NULL);

	if (block)
		keep(w, changed(w, block, next_random(w) % 3 == 0));
}

__attribute__((noinline)) static void free_own(struct worker *w)
{
	struct tag **place = &w->own[next_random(w) % OWN_BLOCKS];

	release(w, *place);
	*place = NULL;
}

__attribute__((noinline)) static void free_shared(struct worker *w)
{
	release(w, atomic_exchange(&shared[next_random(w) % SHARED], NULL));
}

__attribute__((noinline)) static void free_by_realloc(struct worker *w)
{
	struct tag **place = &w->own[next_random(w) % OWN_BLOCKS];

	if (!*place)
		return;
	count_freed(w, *place);
	if (next_random(w) % 2)
		sink = realloc(*place, 0);
	else
		sink = reallocarray(*place, 0, 8);
	*place = NULL;
}

__attribute__((noinline)) static void use_once(struct worker *w)
{
	size_t bytes = random_bytes(w);

	release(w, made(w, malloc(bytes), bytes));
}

/* Too small for a tag. */
__attribute__((noinline)) static void use_nothing(struct worker *w)
{
	void *block = malloc(0);
	struct tag tag = { .maker = w->id, .number = ++w->made };

	require(block != NULL);
	w->figures.allocations++;
	count_live(1, 0);
	count_freed(w, &tag);
	free(block);
}

__attribute__((noinline)) static void refuse(struct worker *w)
{
	struct tag *own = w->own[next_random(w) % OWN_BLOCKS];
	size_t huge = (size_t)1 << 60;
	void *block = NULL;

	switch (next_random(w) % 6) {
	case 0:
		block = malloc(huge);
		break;
	case 1:
		block = calloc(huge, 17);
		break;
	case 2:
		block = realloc(own, huge);
		break;
	case 3:
		block = reallocarray(own, huge, 17);
		break;
	case 4:
		require(posix_memalign(&block, 24, 100));
		break;
	default:
		block = memalign(64, huge);
		break;
	}
	require(!block);
	w->figures.failed++;
}

static const action_fn actions[] = {
	by_malloc,	  by_malloc,	 by_malloc,	by_malloc,	 by_calloc,
	by_calloc,	  by_realloc,	 by_realloc,	by_reallocarray, by_posix_memalign,
	by_aligned_alloc, by_memalign,	 by_pages,	change_own,	 change_own,
	change_own,	  change_shared, change_shared, free_own,	 free_own,
	free_own,	  free_shared,	 free_shared,	free_by_realloc, use_once,
	use_once,	  use_once,	 use_nothing,	refuse,
};

#define ACTIONS (sizeof(actions) / sizeof(*actions))

/* Behind a call, so that it is no tail call. */
#define NOT_LAST __asm__ volatile("" : : : "memory")

/* Two functions that differ, three levels of them. */
#define WAY(name, next_left, next_right)                                                           \
	__attribute__((noinline)) static void name(struct worker *w, unsigned int way,             \
						   action_fn f)                                    \
	{                                                                                          \
		__asm__ volatile("# " #name);                                                      \
		if (way & 1)                                                                       \
			next_left(w, way >> 1, f);                                                 \
		else                                                                               \
			next_right(w, way >> 1, f);                                                \
		NOT_LAST;                                                                          \
	}

__attribute__((noinline)) static void act(struct worker *w, unsigned int way, action_fn f)
{
	f(w);
	NOT_LAST;
}

WAY(left_3, act, act)
WAY(right_3, act, act)
WAY(left_2, left_3, right_3)
WAY(right_2, left_3, right_3)
WAY(ways, left_2, right_2)

#define SITE(n)                                                                                    \
	__attribute__((noinline)) static void site_##n(struct worker *w)                           \
	{                                                                                          \
		action_fn f = actions[(next_random(w) + (n)) % ACTIONS];                           \
                                                                                                   \
		ways(w, next_random(w) % 8, f);                                                    \
		NOT_LAST;                                                                          \
	}

/* clang-format off */
#define TEN_SITES(X, n)                                                                            \
	X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define EVERY_SITE(X) TEN_SITES(X, 1) TEN_SITES(X, 2) TEN_SITES(X, 3) TEN_SITES(X, 4)

EVERY_SITE(SITE)
/* clang-format on */

#define NAME(n) site_##n,
static const action_fn sites[SITES] = { EVERY_SITE(NAME) };

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned long i = 0; i < n_ops; i++)
		sites[next_random(w) % SITES](w);
	for (size_t i = 0; i < OWN_BLOCKS; i += 2)
		release(w, w->own[i]);
	return NULL;
}

static void add(struct figures *sum, const struct figures *one)
{
	sum->allocations += one->allocations;
	sum->deallocations += one->deallocations;
	sum->reallocations += one->reallocations;
	sum->failed += one->failed;
	sum->bytes_allocated += one->bytes_allocated;
	sum->bytes_deallocated += one->bytes_deallocated;
	sum->temporary += one->temporary;
	sum->temporary_bytes += one->temporary_bytes;
}

static void state(const char *name, unsigned long number)
{
	if (!number)
		return;
	say(name);
	say_number("=", number, " ");
}

int main(int argc, char **argv)
{
	struct worker *w = &workers[MAX_THREADS];
	struct figures sum = { 0 };

	if (argc != 4)
		return 2;
	n_threads = number_or(argv[2], 0);
	n_ops = number_or(argv[3], 0);
	if (!n_threads || n_threads > MAX_THREADS)
		return 2;
	for (unsigned long i = 0; i < n_threads; i++) {
		workers[i].id = i;
		workers[i].random = number_or(argv[1], 0) * 1000003 + i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	}
	for (unsigned long i = 0; i < n_threads; i++) {
		pthread_join(workers[i].thread, NULL);
		add(&sum, &workers[i].figures);
	}
	w->id = MAX_THREADS;
	for (size_t i = 0; i < SHARED; i += 2)
		release(w, shared[i]);
	add(&sum, &w->figures);

	state("allocations", sum.allocations);
	state("deallocations", sum.deallocations);
	state("reallocations", sum.reallocations);
	state("failed", sum.failed);
	state("bytes_allocated", sum.bytes_allocated);
	state("bytes_deallocated", sum.bytes_deallocated);
	state("live", sum.allocations - sum.deallocations);
	state("live_bytes", sum.bytes_allocated - sum.bytes_deallocated);
	state("temporary", sum.temporary);
	state("temporary_bytes", sum.temporary_bytes);
	state("peak", peak);
	state("peak_bytes", peak_bytes);
	say("\n");
	return 0;
}
