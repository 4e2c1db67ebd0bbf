// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps what heaps have of the resident memory, and live blocks by size class. */
#include <errno.h>
#include <string.h>

#include "array.h"
#include "profile.h"
#include "profile_internal.h"

static const char *const heap_names[HEAP_KINDS] = {
	[HEAP_MAIN] = "main",	  [HEAP_BREAK] = "brk",	  [HEAP_ARENA] = "arena",
	[HEAP_MAPPED] = "mapped", [HEAP_OTHER] = "other",
};

static const char *const rule_names[SIZE_RULES] = {
	[SIZE_RULE_UNKNOWN] = "unknown",
	[SIZE_RULE_GLIBC] = "glibc",
	[SIZE_RULE_JEMALLOC] = "jemalloc",
};

static int find_name(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	return -ENOENT;
}

const char *heap_kind__name(enum heap_kind kind)
{
	return heap_names[kind];
}

int heap_kind__by_name(const char *name)
{
	return find_name(heap_names, HEAP_KINDS, name);
}

const char *size_rule__name(enum size_rule rule)
{
	return rule_names[rule];
}

int size_rule__by_name(const char *name)
{
	return find_name(rule_names, SIZE_RULES, name);
}

/* A process has fewer heaps of a kind, and allocators have fewer size classes. */
#define MOST_SEARCHED 4096

static void add_up(__u64 *sum, __u64 more)
{
	*sum = profile__add_up(*sum, more);
}

void profile_heap__add(struct profile_heap *to, const struct profile_heap *more)
{
	add_up(&to->mappings, more->mappings);
	add_up(&to->resident_bytes, more->resident_bytes);
	add_up(&to->block_bytes, more->block_bytes);
	add_up(&to->slack_bytes, more->slack_bytes);
	add_up(&to->free_bytes, more->free_bytes);
	add_up(&to->blocks, more->blocks);
	add_up(&to->size_bytes, more->size_bytes);
}

void profile_size_class__add(struct profile_size_class *to, const struct profile_size_class *more)
{
	add_up(&to->blocks, more->blocks);
	add_up(&to->size_bytes, more->size_bytes);
	add_up(&to->usable_bytes, more->usable_bytes);
}

int profile__add_heap(struct profile *profile, const struct profile_heap *heap)
{
	size_t n = profile->n_heaps;
	struct profile_heap *to;
	int err;

	if (!heap->process || heap->process > profile->n_processes ||
	    (n && profile->heaps[n - 1].process > heap->process))
		return -EINVAL;
	for (size_t i = n;
	     i-- > 0 && n - i <= MOST_SEARCHED && profile->heaps[i].process == heap->process;) {
		to = &profile->heaps[i];
		if (to->kind != heap->kind || to->address != heap->address)
			continue;
		profile_heap__add(to, heap);
		return 0;
	}
	err = profile_index__reserve(&profile->heaps, &profile->index->heaps_room, n,
				     sizeof(*heap));
	if (!err)
		profile->heaps[profile->n_heaps++] = *heap;
	return err;
}

int profile__add_size_class(struct profile *profile, const struct profile_size_class *sizes)
{
	size_t n = profile->n_size_classes;
	struct profile_size_class *to;
	int err;

	if (n >= MOST_SEARCHED)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		to = &profile->size_classes[i];
		if (to->rule != sizes->rule || to->most_bytes != sizes->most_bytes)
			continue;
		profile_size_class__add(to, sizes);
		return 0;
	}
	err = profile_index__reserve(&profile->size_classes, &profile->index->size_classes_room, n,
				     sizeof(*sizes));
	if (!err)
		profile->size_classes[profile->n_size_classes++] = *sizes;
	return err;
}

int profile__copy_heaps(struct profile *to, const struct profile *from, const __u32 *processes)
{
	int err = 0;

	for (size_t i = 0; i < from->n_heaps && !err; i++) {
		struct profile_heap heap = from->heaps[i];

		heap.process = processes[heap.process - 1];
		if (heap.process)
			err = profile__add_heap(to, &heap);
	}
	for (size_t i = 0; i < from->n_size_classes && !err; i++)
		err = profile__add_size_class(to, &from->size_classes[i]);
	return err;
}
