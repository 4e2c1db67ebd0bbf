// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "next.h"

#include "objects.h"

#define NAME(name, ...) [NEXT_##name] = #name,
static const char *const names[NEXT_FUNCTIONS] = { NEXT_ALLOCATOR(NAME) NEXT_OTHERS(NAME) };
#undef NAME

void *next_functions[NEXT_FUNCTIONS];
bool next_realloc_is_preceded;
struct next_bodies next_bodies;

static struct {
	__u64 start, end;
} bodies[NEXT_ALLOCATORS];

void *next__find(enum next which)
{
	struct definition found;

	if (which == NEXT_realloc)
		next_realloc_is_preceded = objects__is_preceded("realloc");
	if (!objects__find_next(names[which], &found))
		return NULL;
	if (which < NEXT_ALLOCATORS) {
		bodies[which].start = (__u64)found.address;
		bodies[which].end = bodies[which].start + found.size;
	}
	next_functions[which] = found.address;
	return found.address;
}

void next__prepare(void)
{
	__u64 start = ~0ULL, end = 0;

	for (int i = 0; i < NEXT_ALLOCATORS; i++) {
		next__find(i);
		if (!bodies[i].end)
			continue;
		start = bodies[i].start < start ? bodies[i].start : start;
		end = bodies[i].end > end ? bodies[i].end : end;
	}
	next_bodies.start = start;
	next_bodies.size = end > start ? end - start : 0;
}

bool next__is_body(__u64 return_address)
{
	for (int i = 0; i < NEXT_ALLOCATORS; i++)
		if (return_address > bodies[i].start && return_address <= bodies[i].end)
			return true;
	return false;
}
