// SPDX-License-Identifier: GPL-3.0-or-later
/* Chooses among the mappings and registers of a process those that can have pointers. */
#include "reach_roots.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "memory_mappings.h"
#include "remote.h"

/* Functions may use this much below the stack pointer (the ABI of x86-64, 3.2.2; that of arm64 allows none). */
#define RED_ZONE 128
/* The C libraries put a thread's data at the end of its stack; with its thread-local variables
 * they are seldom larger. */
#define MOST_THREAD_DATA (1 << 20)

static int add_range(struct reach_ranges *to, struct reach_range range)
{
	if (range.begin >= range.end)
		return 0;
	if (array__reserve(&to->ranges, &to->room, to->n + 1, sizeof(*to->ranges)))
		return -ENOMEM;
	to->ranges[to->n++] = range;
	return 0;
}

int reach_ranges__add(struct reach_ranges *ranges, __u64 begin, __u64 end)
{
	return add_range(ranges, (struct reach_range){ .begin = begin, .end = end });
}

void reach_ranges__release(struct reach_ranges *ranges)
{
	free(ranges->ranges);
	*ranges = (struct reach_ranges){ 0 };
}

static int compare_ranges(const void *a, const void *b)
{
	const struct reach_range *first = a, *second = b;

	return first->begin < second->begin ? -1 : first->begin > second->begin;
}

/* Adds what of the range is in none of @without, which ascend. */
static int add_rest(struct reach_ranges *to, struct reach_range range,
		    const struct reach_ranges *without)
{
	int err = 0;

	for (size_t i = 0; i < without->n && !err; i++) {
		const struct reach_range *own = &without->ranges[i];
		struct reach_range before = range;

		if (own->end <= range.begin)
			continue;
		if (own->begin >= range.end)
			break;
		before.end = own->begin;
		err = add_range(to, before);
		range.begin = own->end < range.end ? own->end : range.end;
	}
	return err ? err : add_range(to, range);
}

struct stack_top {
	__u64 pointer, data; /* the stack pointer, and the address of the thread's data */
};

struct roots_reader {
	struct reach_roots *roots;
	const struct stack_top *tops;
	size_t n_tops;
	const struct reach_ranges *own;
};

static int add_thread(struct reach_roots *roots, __u64 address)
{
	if (array__reserve(&roots->threads, &roots->threads_room, roots->n_threads + 1,
			   sizeof(*roots->threads)))
		return -ENOMEM;
	roots->threads[roots->n_threads++] = address;
	return 0;
}

static bool has_thread(const struct roots_reader *reader, const struct memory_mapping *mapping)
{
	for (size_t i = 0; i < reader->n_tops; i++)
		if (reader->tops[i].data >= mapping->begin && reader->tops[i].data < mapping->end)
			return true;
	return false;
}

/* Returns where the used part of a stack begins. A mapping with more than a stack, such as a pool
 * of coroutines' stacks, is used from its beginning. */
static __u64 used_begin(const struct roots_reader *reader, const struct memory_mapping *mapping)
{
	for (size_t i = 0; i < reader->n_tops && mapping->kind == MEMORY_STACK; i++) {
		const struct stack_top *top = &reader->tops[i];
		bool has_data = top->data > top->pointer && top->data < mapping->end &&
				mapping->end - top->data < MOST_THREAD_DATA;

		if (top->pointer < mapping->begin + RED_ZONE || top->pointer >= mapping->end)
			continue;
		if (mapping->is_main_stack || (mapping->is_guarded && has_data))
			return (top->pointer - RED_ZONE) & ~7ULL;
	}
	return mapping->begin;
}

/* Returns whether the mapping cannot have a program's pointers. */
static bool is_without_roots(const struct memory_mapping *mapping)
{
	switch (mapping->kind) {
	case MEMORY_OWN:
		return true;
	case MEMORY_SHARED:
		return !mapping->is_writable || mapping->is_device;
	default:
		return mapping->is_device;
	}
}

/* A heap may be several mappings, if the program has changed some pages: a chunk may lie in both. */
static bool extend_heap(struct reach_ranges *ranges, const struct memory_mapping *mapping)
{
	struct reach_range *last = ranges->n ? &ranges->ranges[ranges->n - 1] : NULL;

	if (mapping->kind != MEMORY_BREAK || !last || !last->is_heap || last->is_arena ||
	    last->end != mapping->begin)
		return false;
	last->end = mapping->end;
	return true;
}

static int add_mapping(const struct roots_reader *reader, const struct memory_mapping *mapping)
{
	struct reach_roots *roots = reader->roots;
	bool is_file = mapping->kind == MEMORY_FILE;
	struct reach_range range = {
		.begin = used_begin(reader, mapping),
		.end = mapping->end,
		.is_file = is_file,
		.only_begins = is_file && mapping->is_c_library,
		.is_c_library = mapping->is_c_library,
		.is_heap = mapping->kind == MEMORY_BREAK || mapping->kind == MEMORY_ARENA,
		.is_arena = mapping->kind == MEMORY_ARENA,
	};
	int err = 0;

	if (is_file)
		err = add_range(&roots->files, range);
	if (!err && mapping->is_code)
		err = add_range(&roots->code, range);
	if (!err && mapping->kind == MEMORY_STACK && mapping->is_guarded &&
	    !has_thread(reader, mapping))
		err = add_thread(roots, mapping->end);
	if (err || is_without_roots(mapping) || (mapping->is_code && !mapping->is_writable))
		return err;
	if (extend_heap(&roots->memory, mapping))
		return 0;
	return add_rest(&roots->memory, range, reader->own);
}

static int add_registers(struct reach_roots *roots, pid_t tid, struct stack_top *top)
{
	size_t n;
	int err;

	if (array__reserve(&roots->words, &roots->words_room, roots->n_words + REMOTE_REGISTERS,
			   sizeof(*roots->words)))
		return -ENOMEM;
	err = remote__registers(tid, roots->words + roots->n_words, &n) ?:
	      remote__position(tid, NULL, &top->pointer)		?:
	      remote__thread_data(tid, &top->data)			?:
	      add_thread(roots, remote__variables_end(top->data));
	if (!err)
		roots->n_words += n;
	return err;
}

static int read_roots(pid_t pid, const pid_t *tids, struct stack_top *tops, size_t n_tids,
		      struct roots_reader *reader)
{
	struct memory_mappings memory;
	int err = 0;

	for (size_t i = 0; i < n_tids && !err; i++)
		err = add_registers(reader->roots, tids[i], &tops[i]);
	if (!err)
		err = memory_mappings__read(pid, false, &memory);
	if (err)
		return err;
	reader->tops = tops;
	reader->n_tops = n_tids;
	for (size_t i = 0; i < memory.n && !err; i++)
		err = add_mapping(reader, &memory.mappings[i]);
	memory_mappings__release(&memory);
	return err;
}

int reach_roots__read(pid_t pid, const pid_t *tids, size_t n_tids, struct reach_ranges *own,
		      struct reach_roots *out)
{
	struct reach_roots roots = { 0 };
	struct roots_reader reader = { .roots = &roots, .own = own };
	struct stack_top *tops = calloc(n_tids + 1, sizeof(*tops));
	int err;

	if (own->n)
		qsort(own->ranges, own->n, sizeof(*own->ranges), compare_ranges);
	err = tops ? read_roots(pid, tids, tops, n_tids, &reader) : -ENOMEM;

	free(tops);
	if (err)
		reach_roots__release(&roots);
	else
		*out = roots;
	return err;
}

void reach_roots__release(struct reach_roots *roots)
{
	reach_ranges__release(&roots->memory);
	reach_ranges__release(&roots->files);
	reach_ranges__release(&roots->code);
	free(roots->words);
	free(roots->threads);
	*roots = (struct reach_roots){ 0 };
}
