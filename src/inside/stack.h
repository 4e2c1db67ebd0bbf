/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the stack on which a thread runs, and reads memory that may not be mapped. */
#ifndef ALLOCPROF_INSIDE_STACK_H
#define ALLOCPROF_INSIDE_STACK_H

#include <linux/types.h>
#include <stdbool.h>

/* The range in which a thread's frames may be read without asking the kernel. */
struct stack_range {
	__u64 start, end;
	/* The end of the thread's own stack: memory between a frame and this address stays mapped
	 * as long as the thread lives. 0: this is another stack, or it is not known to be the
	 * thread's own. */
	__u64 own_end;
};

/* Finds the mapping around @sp; the range is empty if there is none. @thread_data is
 * processor__thread_data(). @buffer is working memory of @size bytes. */
void stack__range(__u64 sp, __u64 thread_data, struct stack_range *out, void *buffer, __u32 size);

/* Returns a number that changes when a stack other than a thread's own may have been unmapped. */
__u32 stack__generation(void);

/* To be called when memory was unmapped, or cannot be read any more. */
void stack__unmapped(__u64 address, __u64 size);

/* To be called before @block is freed. Returns whether freeing it may unmap memory: for a block
 * with a mapping of its own glibc makes the system call itself. */
static inline bool stack__may_unmap(__u64 block)
{
	/* A block with a mapping of its own follows glibc's header of 16 bytes at the beginning of
	 * a page. */
	return (block & 4095) == 16;
}

void stack__freed(__u64 block);

/* Reads a word that others may have written, in memory that is known to be mapped. In the host
 * build tests provide the memory. */
#ifdef INSIDE_HOST
__u64 host__word(__u64 address);
#define stack__word(address) host__word(address)
#else
#define stack__word(address) (*(const volatile __u64 *)(address))
#endif

/* Reads memory that may not be mapped. Returns how many bytes could be read, or a negative errno. */
long memory__read_some(__u64 address, void *out, __u32 size);
bool memory__read(__u64 address, void *out, __u32 size);

/* Reads a word in memory that only calls that end in stack__unmapped() unmap, and that in most
 * cases was read before. Returns false if it cannot be read. */
bool memory__read_kept(__u64 address, __u64 *value);

/* A copy of a part of a stack; empty if @size is 0. */
struct stack_copy {
	__u64 start, size;
	__u64 words[64];
};

/* Reads a word of a stack that may have been unmapped from the copy, which is made anew from
 * @address on if it lacks the word. Returns false if the word cannot be read. */
bool stack_copy__load(struct stack_copy *copy, __u64 address, __u64 *value);

#endif
