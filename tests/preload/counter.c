// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The independent truth for the live tests: counts the application's calls of the C library's
 * allocator and touches nothing else. Every stub counts and then jumps to the real function.
 *
 * The counters are a file mapped shared by every process that has ALLOCPROF_COUNTER=FILE in its
 * first environment: fork, vfork, exec and _exit need no handling, and nothing is ever flushed.
 * tests/preload/counter.py creates and reads the file.
 */
#include <errno.h>
#include <stdatomic.h>

#include "common.h"

/* No process can be given so much, and sums of such requests would hide all others. */
#define IMPOSSIBLE_BYTES ((size_t)1 << 47)

const char library_name[] = "libcounter";

#define MAGIC 0x31746e756f437061ull /* "apCount1" */

struct slot {
	atomic_uint_least64_t calls;
	atomic_uint_least64_t bytes;
	atomic_uint_least64_t fresh;	   /* realloc(NULL, n) */
	atomic_uint_least64_t fresh_bytes; /* their part of bytes */
	atomic_uint_least64_t released;	   /* realloc(p, 0), p not NULL */
	atomic_uint_least64_t null;	   /* free(NULL) */
};

struct counts {
	uint64_t magic;
	atomic_uint_least64_t programs; /* programs that loaded the counter */
	struct slot functions[FUNCTIONS];
};

static struct counts nowhere; /* without ALLOCPROF_COUNTER */
static struct counts *_Atomic counts;

static struct counts *map_counts(const char *path)
{
	struct counts *c = map_output(path, sizeof(*c));

	if (c->magic != MAGIC)
		die("the file in ALLOCPROF_COUNTER is not a counter file");
	return c;
}

/* Always by the only thread: to start another one allocates. */
static struct counts *attach(void)
{
	struct counts *mapped;
	const char *path;
	int saved_errno = errno;

	path = first_environment("ALLOCPROF_COUNTER");
	mapped = path ? map_counts(path) : &nowhere;
	atomic_fetch_add(&mapped->programs, 1);
	atomic_store(&counts, mapped);
	errno = saved_errno;
	return mapped;
}

/* A program that never allocates is a program too. */
__attribute__((constructor)) static void loaded(void)
{
	if (!atomic_load(&counts))
		attach();
}

/* Counts a call; its answer is where the stub goes on. */
__attribute__((visibility("hidden"), used)) void *
counter_enter(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t sp, enum function f);

void *counter_enter(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t sp, enum function f)
{
	struct counts *shared = atomic_load(&counts);
	struct slot *slot;
	size_t bytes;
	bool overflow;

	if (!shared)
		shared = attach();
	if (f == REALLOC && nested__take(a, b, sp))
		return real_function(f);

	slot = &shared->functions[f];
	bytes = requested_bytes(f, a, b, c, &overflow);
	if (f == REALLOCARRAY && !overflow)
		nested__expect(a, bytes, sp);
	if (f == FREE && !a)
		atomic_fetch_add(&slot->null, 1);
	if (f == REALLOC || f == REALLOCARRAY) {
		if (!a) {
			atomic_fetch_add(&slot->fresh, 1);
			if (bytes < IMPOSSIBLE_BYTES)
				atomic_fetch_add(&slot->fresh_bytes, bytes);
		} else if (!bytes && !overflow) {
			atomic_fetch_add(&slot->released, 1);
		}
	}
	atomic_fetch_add(&slot->calls, 1);
	if (bytes < IMPOSSIBLE_BYTES)
		atomic_fetch_add(&slot->bytes, bytes);
	return real_function(f);
}

#define STUB(index, constant, name) JUMPING_STUB(#name, index, "counter_enter");
ALLOCATOR_FUNCTIONS(STUB)
