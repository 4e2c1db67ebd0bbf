/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program that marks regions and counts itself what it allocates in each, as stats_alloc does: in memory
 * that its children share. regions__print() says it, a line for each region that was entered:
 * "NAME entered=N allocations=N reallocations=N deallocations=N asked=N allocated=N grown=N freed=N shrunk=N".
 */
#ifndef REGIONS_H
#define REGIONS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocprof.h"

#define NOINLINE __attribute__((noinline))

enum region {
	PARSE,
	EMIT,
	WRITE,
	REGIONS
};

struct figures {
	unsigned long entered, allocations, reallocations, deallocations;
	unsigned long asked, allocated, grown, freed, shrunk;
};

/* A shared library has what its program has. */
#ifdef REGIONS_ELSEWHERE
extern struct figures *figures;
extern __thread int inside[REGIONS];
#else
struct figures *figures;
__thread int inside[REGIONS];
#endif

#define ADD(figure, n)                                                                             \
	for (int region = 0; region < REGIONS; region++)                                           \
		if (inside[region])                                                                \
	__atomic_fetch_add(&figures[region].figure, (n), __ATOMIC_RELAXED)

static inline void *take(size_t size)
{
	void *block = malloc(size);

	__asm__ volatile("" : "+r"(block));
	ADD(allocations, 1);
	ADD(asked, size);
	ADD(allocated, size);
	return block;
}

static inline void give(void *block, size_t size)
{
	free(block);
	ADD(deallocations, 1);
	ADD(freed, size);
}

static inline void *resize(void *block, size_t before, size_t after)
{
	block = realloc(block, after);
	__asm__ volatile("" : "+r"(block));
	ADD(reallocations, 1);
	ADD(asked, after);
	if (after > before) {
		ADD(grown, after - before);
	} else {
		ADD(shrunk, before - after);
	}
	return block;
}

static inline int enter(enum region region)
{
	inside[region]++;
	__atomic_fetch_add(&figures[region].entered, 1, __ATOMIC_RELAXED);
	return region;
}

static inline void leave(const int *region)
{
	inside[*region]--;
}

/* A scope, and what is known of it without marks. */
#define SCOPE(name, number)                                                                        \
	ALLOCPROF_REGION(name);                                                                    \
	const int ALLOCPROF_UNIQUE_(scope_, __LINE__) __attribute__((cleanup(leave), unused)) =    \
		enter(number)
#define BEGIN(name, number)                                                                        \
	ALLOCPROF_BEGIN(name);                                                                     \
	enter(number)
#define END(name, number)                                                                          \
	ALLOCPROF_END(name);                                                                       \
	inside[number]--

#ifndef REGIONS_ELSEWHERE
static void regions__prepare(void)
{
	figures = (struct figures *)mmap(NULL, REGIONS * sizeof(*figures), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void regions__print(void)
{
	static const char *const names[REGIONS] = { "parse", "emit", "write" };

	for (int i = 0; i < REGIONS; i++) {
		const struct figures *f = &figures[i];

		if (f->entered)
			printf("%s entered=%lu allocations=%lu reallocations=%lu deallocations=%lu "
			       "asked=%lu allocated=%lu grown=%lu freed=%lu shrunk=%lu\n",
			       names[i], f->entered, f->allocations, f->reallocations,
			       f->deallocations, f->asked, f->allocated, f->grown, f->freed,
			       f->shrunk);
	}
	fflush(stdout);
}
#endif

#endif
