/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs and user space say to each other, and the numbers that the data file keeps.
 * The including side provides __u8 … __u64 (<linux/types.h> or bpf/vmlinux.h).
 */
#ifndef ALLOCPROF_ABI_H
#define ALLOCPROF_ABI_H

/* The functions of an allocator. The order decides which name leads where several share an address. */
enum ap_function {
	AP_MALLOC,
	AP_CALLOC,
	AP_REALLOC,
	AP_REALLOCARRAY,
	AP_POSIX_MEMALIGN,
	AP_ALIGNED_ALLOC,
	AP_MEMALIGN,
	AP_VALLOC,
	AP_PVALLOC,
	AP_FREE,
	AP_FUNCTIONS,
};

/* Why a call that happened is in no count. Names for people: profile__lost_name(). */
enum ap_lost {
	AP_LOST_RECURSION,   /* the kernel skipped the program (recursion_misses of bpf_prog_info) */
	AP_LOST_NO_SCRATCH,  /* every scratch slot of this CPU was taken by preempted programs */
	AP_LOST_RING_FULL,   /* the stack's frames found no room in the ring buffer */
	AP_LOST_COUNTS_FULL, /* the counter map and the ring buffer behind it were full */
	AP_LOST_PENDING,     /* a tail call could not be noted, the next hit's nature is unknown */
	AP_LOST_REASONS,
};

/* How a stack's unwinding ended; everything but AP_END_COMPLETE is an incomplete stack. */
enum ap_stack_end {
	AP_END_COMPLETE,   /* the outermost frame was reached */
	AP_END_MAX_DEPTH,  /* more frames than the depth asked for */
	AP_END_NO_MAPPING, /* a return address lies in no mapped file */
	AP_END_BAD_FRAME,  /* the frame pointer does not lead up the stack */
	AP_END_UNREADABLE, /* stack memory could not be read */
	AP_STACK_ENDS,
};

/* Frames of one stack at the most; --max-depth's upper bound. */
#define AP_MAX_DEPTH 512

/* Sites of all allocators of a run at the most; the index is the uprobe's cookie. */
#define AP_MAX_SITES 256

#define AP_COMM_LEN 16

/* A place in code: @offset is a file offset inside module @module, or, where @module is 0 because
 * the kernel could not resolve it, an address of the process. */
struct ap_frame {
	__u32 module;
	__u32 flags; /* none yet, 0 */
	__u64 offset;
};

#endif
