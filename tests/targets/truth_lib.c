// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * For truth_early and truth_load: allocates in its constructor, in its destructor and in its
 * functions. Built twice, with frames of LOCAL_BYTES each, so that the two differ at every address; and
 * both again with a frame whose CFA is told by a register that calls keep and no table has: FROM_KEPT.
 */
#include "raw.h"
#include "truth_lib.h"
#if defined(__x86_64__)
#include "truth_x86.h"
#elif defined(__aarch64__)
#include "truth_arm64.h"
#endif

static void *volatile last;

static __attribute__((noinline)) void allocate_here(size_t size)
{
	volatile char local[LOCAL_BYTES];

	local[0] = 1;
	last = malloc(size);
	free(last);
	local[1] = local[0];
}

#ifdef FROM_KEPT
void allocate(size_t size) __asm__("allocate") __attribute__((visibility("hidden")));
__attribute__((used, visibility("hidden"))) void (*const here)(size_t) = allocate_here;

__asm__(ALLOCATE_FROM_KEPT);
#else
#define allocate allocate_here
#endif

__attribute__((constructor)) static void loaded(void)
{
	allocate(3001);
}

__attribute__((destructor)) static void unloaded(void)
{
	allocate(3002);
}

void truth_lib_call(void (*callee)(void))
{
	volatile char local[LOCAL_BYTES * 2];

	local[0] = 1;
	allocate(3003);
	callee();
	allocate(3004);
	local[1] = local[0];
}

static void chosen(size_t size)
{
	allocate(size);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((used)) void (*choose(void))(size_t)
{
	allocate(3005);
	return chosen;
}

void truth_lib_chosen(size_t size) __attribute__((ifunc("choose")));
