/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process's executable mappings. */
#ifndef ALLOCPROF_INSIDE_CODE_H
#define ALLOCPROF_INSIDE_CODE_H

#include <linux/types.h>
#include <stdbool.h>

/* An executable mapping, or a known part of one. */
struct code_range {
	__u64 start, end;
	__u64 bias;   /* file offset minus address; 0 without a file */
	__u32 module; /* 0: it has no file */
	__u32 pad;
};

/* Finds the mapping around @address. If need be, waits until allocprof has compiled the file's
 * unwind table. Fails with -ENOENT if nothing is mapped there, nor anywhere between out->start and
 * out->end. Another negative errno: the kernel's list of mappings cannot be read. */
int code__find(__u64 address, struct code_range *out);

/* Stores in *@said what code__remember() has noted of the bytes at @address in this generation of
 * code. Returns false if it has noted nothing, or the note is too old. */
bool code__recall(__u64 address, __u32 *said);
void code__remember(__u64 address, __u32 said);

/* Forgets what code__remember() has noted: the process may have written other code there. */
void code__forget_bytes(void);

/* Publishes the file that is mapped at @address, unless a process has done so. Processes that walk
 * stacks publish each file that they meet; other processes call this function. */
void code__publish(__u64 address);

/* Maps the unwind tables and finds the dynamic linker. To be called once, before any other
 * function of this header. */
void code__begin(void);

/* Does the same when the process has another shared memory, which has no file yet. */
void code__begin_again(void);

/* Returns the module number of this library, or 0 if it is not known. */
__u32 code__own_module(void);

/* To be called at each hit: the dynamic linker calls the allocator whenever it has unloaded an object, before
 * another one can be loaded in its place, and when it has mapped those that it loads. */
void code__check_unloaded(__u64 return_address);

/* Returns a number that changes when libraries may have been loaded, before their constructors
 * run. */
__u32 code__loads(void);

/* To be called after a library was loaded. */
void code__loaded(void);

/* To be called when other code may have been mapped. */
void code__change(void);

/* Does what code__change() does, if the unmapped range contains known code. */
void code__unmapped(__u64 address, __u64 size);

/* Returns a number that changes when code may be mapped where other code was. */
__u32 code__generation(void);

#endif
