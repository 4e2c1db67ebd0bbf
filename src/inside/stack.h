/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stack that a thread is on, and memory that may not be mapped. */
#ifndef ALLOCPROF_INSIDE_STACK_H
#define ALLOCPROF_INSIDE_STACK_H

#include <linux/types.h>
#include <stdbool.h>

/* Where a thread's frames may be read without asking the kernel. */
struct stack_range {
	__u64 start, end;
	/* The thread's own stack ends here: up to here whatever is above a frame is mapped as long as the thread lives. 0: it is
	 * another stack, or cannot be told from one. */
	__u64 own_end;
};

/* The mapping around @sp; empty if there is none. @thread_data: where FS points to. @buffer is room to work in. */
void stack__range(__u64 sp, __u64 thread_data, struct stack_range *out, void *buffer, __u32 size);

/* A number that changes when a stack that is not a thread's own may have been unmapped. */
__u32 stack__generation(void);

/* To be called when memory was unmapped, or cannot be read any more. */
void stack__unmapped(__u64 address, __u64 size);

/* To be called before @block is freed: glibc unmaps what it has mapped for one block by a system call of its own. */
static inline bool stack__may_unmap(__u64 block)
{
	/* glibc's header of such a block is the first 16 bytes of the mapping, which begins at a page. */
	return (block & 4095) == 16;
}

void stack__freed(__u64 block);

/* A word that others have written, in memory that is known to be mapped. Tests of the host say themselves what is there. */
#ifdef INSIDE_HOST
__u64 host__word(__u64 address);
#define stack__word(address) host__word(address)
#else
#define stack__word(address) (*(const volatile __u64 *)(address))
#endif

/* Reads memory that may not be mapped. Returns how many bytes there are, or a negative errno. */
long memory__read_some(__u64 address, void *out, __u32 size);
bool memory__read(__u64 address, void *out, __u32 size);

/* A word of memory that is not unmapped but by what calls stack__unmapped(), and was read before in most cases. */
bool memory__read_kept(__u64 address, __u64 *value);

/* A copy of some words of a stack; empty if @size is 0. */
struct stack_copy {
	__u64 start, size;
	__u64 words[64];
};

/* A word of a stack that may have been unmapped: from the copy, which is made anew from @address on where it has none. */
bool stack_copy__load(struct stack_copy *copy, __u64 address, __u64 *value);

#endif
