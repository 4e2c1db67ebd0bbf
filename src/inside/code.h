/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process's executable mappings, and the stack that a thread is on. */
#ifndef ALLOCPROF_INSIDE_CODE_H
#define ALLOCPROF_INSIDE_CODE_H

#include <linux/types.h>
#include <stdbool.h>

/* An executable mapping. */
struct code_range {
	__u64 start, end;
	__u64 bias;   /* file offset minus address; 0 without a file */
	__u32 module; /* 0: of no file */
	__u32 pad;
};

/* The mapping around @address; false if there is none. Waits, if need be, until allocprof has compiled
 * the file's unwind table. */
bool code__find(__u64 address, struct code_range *out);

/* Publishes the file that is mapped at @address, if no process has. Processes that walk stacks publish each file that they meet; the
 * others have this function. */
void code__publish(__u64 address);

/* Maps the unwind tables, and finds the dynamic linker; once, before anything else here. */
void code__begin(void);

/* This library's; 0 if it is not known. */
__u32 code__own_module(void);

/* To be called at each hit: the dynamic linker calls the allocator whenever it has unloaded an object, before
 * another one can be loaded in its place. */
void code__check_unloaded(__u64 return_address);

/* To be called when other code may have been mapped. */
void code__change(void);

/* The same, if what was there is known as code. */
void code__unmapped(__u64 address, __u64 size);

/* A number that changes when code may be mapped where other code was. */
__u32 code__generation(void);

/* Where memory may be read without asking the kernel. */
struct stack_range {
	__u64 start, end;
};

/* The mapping around @sp; empty if there is none. @buffer is room to work in. */
void stack__range(__u64 sp, struct stack_range *out, void *buffer, __u32 size);

/* Reads memory that may not be mapped. Returns how many bytes there are, or a negative errno. */
long memory__read_some(__u64 address, void *out, __u32 size);
bool memory__read(__u64 address, void *out, __u32 size);

/* Some words of a stack, as they were a moment ago; of @size 0 it is empty. */
struct stack_copy {
	__u64 start, size;
	__u64 words[64];
};

/* A word of a stack that may have been unmapped: from the copy, which is made anew from @address on where it has none. */
bool stack_copy__load(struct stack_copy *copy, __u64 address, __u64 *value);

#endif
