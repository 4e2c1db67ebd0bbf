// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the stack that a thread is on, and reads memory that may not be there. */
#include "stack.h"

#include <asm/unistd.h>

#include "code.h"
#include "maps.h"
#include "memory.h"

#define PAGE_BITS 12
#define PAGE	  (1 << PAGE_BITS)

#define STACKS_SHIFT 12
#define READ_SHIFT   9
#define BELOW_BITS   28

static struct kept stacks[1 << STACKS_SHIFT], reads[1 << READ_SHIFT];

static const struct kept_table
	/* Keys are the page numbers of stack pointers; values are how many pages of the stack are
	 * above that page and, in the low BELOW_BITS bits, how many are below. */
	stack_pages = { stacks, STACKS_SHIFT, 20 },
	/* Keys are page numbers of pages that could be read. */
	read_pages = { reads, READ_SHIFT, 20 };

static struct {
	__u32 generation;
	__u64 main_start, main_end; /* the main thread's; 0: not known yet */
} stack;

__u32 stack__generation(void)
{
	return __atomic_load_n(&stack.generation, __ATOMIC_RELAXED);
}

static void stack__change(void)
{
	__atomic_fetch_add(&stack.generation, 1, __ATOMIC_RELEASE);
}

void stack__unmapped(__u64 address, __u64 size)
{
	stack__change();
	/* A process that goes on does not unmap its main stack; if one does, the stacks of all
	 * threads are looked for again, too. */
	if (address < stack.main_end && address + size > stack.main_start)
		code__change();
}

/* The bit in glibc's header of a block that has a mapping of its own. In another allocator's
 * memory the word means nothing, and at worst stacks are looked for once more. */
#define GLIBC_MAPPED 2

void stack__freed(__u64 block)
{
	if (stack__word(block - sizeof(block)) & GLIBC_MAPPED)
		stack__change();
}

static bool find_known(__u64 key, __u64 page, struct stack_range *out)
{
	__u64 value;

	if (!kept__find(&stack_pages, key, &value))
		return false;
	*out = (struct stack_range){
		.start = (page - (value & ((1 << BELOW_BITS) - 1))) << PAGE_BITS,
		.end = (page + (value >> BELOW_BITS)) << PAGE_BITS,
	};
	return true;
}

static void keep(__u64 key, __u64 page, const struct stack_range *range)
{
	__u64 above = (range->end >> PAGE_BITS) - page, below = page - (range->start >> PAGE_BITS);

	if (below < 1 << BELOW_BITS && !kept__put(&stack_pages, key, above << BELOW_BITS | below))
		stack__change();
}

/*
 * Returns whether @around contains the stack at @sp and nothing else. For a thread other than the
 * first, the C library puts the thread's data at the upper end of the stack's mapping, with a
 * guard page below: so if both are in @around, nothing else is.
 */
static bool is_own(__u64 sp, __u64 thread_data, const struct mapping *around, void *buffer,
		   __u32 size)
{
	struct mapping guard;

	return sp < thread_data && thread_data < around->end && sys__tid() != sys__pid() &&
	       !maps__find(around->start - 1, &guard, NULL, 0, buffer, size) && guard.is_closed;
}

void stack__range(__u64 sp, __u64 thread_data, struct stack_range *out, void *buffer, __u32 size)
{
	__u64 page = sp >> PAGE_BITS, key = kept__key(&stack_pages, page, stack__generation());
	struct mapping mapping;
	char least[64], name[16] = { 0 };

	if (find_known(key, page, out))
		return;
	if (size < sizeof(least)) {
		buffer = least;
		size = sizeof(least);
	}
	*out = (struct stack_range){ 0 };
	if (maps__find(sp, &mapping, name, sizeof(name), buffer, size))
		return;
	*out = (struct stack_range){ mapping.start, mapping.end, 0 };
	if (text__equal(name, "[stack]")) {
		stack.main_start = mapping.start;
		stack.main_end = mapping.end;
		out->own_end = mapping.end;
	} else if (is_own(sp, thread_data, &mapping, buffer, size)) {
		out->own_end = thread_data;
	} else {
		keep(key, page, out);
	}
}

long memory__read_some(__u64 address, void *out, __u32 size)
{
	const struct {
		void *address;
		size_t size;
	} local = { out, size }, remote = { (void *)address, size };

	return sys(__NR_process_vm_readv, sys__pid(), (long)&local, 1, (long)&remote, 1, 0);
}

bool memory__read(__u64 address, void *out, __u32 size)
{
	return memory__read_some(address, out, size) == (long)size;
}

bool memory__read_kept(__u64 address, __u64 *value)
{
	__u64 key = kept__key(&read_pages, address >> PAGE_BITS, stack__generation()), none;
	bool is_aligned = !(address & 7);

	if (is_aligned && kept__find(&read_pages, key, &none)) {
		*value = stack__word(address);
		return true;
	}
	if (!memory__read(address, value, sizeof(*value)))
		return false;
	if (is_aligned && !kept__put(&read_pages, key, 1))
		stack__change();
	return true;
}

bool stack_copy__load(struct stack_copy *copy, __u64 address, __u64 *value)
{
	__u64 at = address - copy->start;

	if (address & 7)
		return false;
	if (at >= copy->size || copy->size - at < sizeof(*value)) {
		long size = memory__read_some(address, copy->words, sizeof(copy->words));

		copy->start = address;
		copy->size = size > 0 ? size : 0;
		at = 0;
	}
	if (copy->size - at < sizeof(*value))
		return false;
	*value = copy->words[at / sizeof(*value)];
	return true;
}
