/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs and user space say to each other, and the numbers that the data file keeps.
 */
#ifndef ALLOCPROF_ABI_H
#define ALLOCPROF_ABI_H

#include <linux/types.h>

#include "region_abi.h"

/* What calls are counted by: functions of an allocator, those of one kind together. The order decides which
 * leads where several share an address. What each function's arguments are is in src/probe/interface.c. */
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
	AP_C_FUNCTIONS, /* the ones before may be a C library's */
	AP_NEW = AP_C_FUNCTIONS,
	AP_DELETE,
	AP_FREE_SIZED,
	AP_MALLOCX,
	AP_RALLOCX,
	AP_XALLOCX,
	AP_DALLOCX,
	AP_SDALLOCX,
	/* What the kernel is asked for, told by system calls; the order is that of their sites. */
	AP_MMAP,
	AP_MREMAP,
	AP_BRK,
	AP_MUNMAP,
	AP_DEFINED, /* from here on those of sources that are defined at run time, each with all kinds */
};

#define AP_MAPPING_FUNCTIONS (AP_MUNMAP - AP_MMAP + 1)

/* What the functions of a defined source do; function AP_DEFINED + source * AP_SOURCE_KINDS + kind. */
enum ap_source_kind {
	AP_SOURCE_ALLOC,
	AP_SOURCE_REALLOC,
	AP_SOURCE_FREE,
	AP_SOURCE_KINDS,
};

/* Sources of a run at the most, so that a mask of all functions has 64 bits. */
#define AP_MAX_SOURCES 13

#define AP_FUNCTIONS (AP_DEFINED + AP_MAX_SOURCES * AP_SOURCE_KINDS)

/* Masks of all functions, and of the first one of each defined source: every AP_SOURCE_KINDS-th bit. */
#define AP_ALL_FUNCTIONS ((1ULL << AP_FUNCTIONS) - 1)
#define AP_EACH_SOURCE                                                                             \
	(((1ULL << AP_MAX_SOURCES * AP_SOURCE_KINDS) - 1) / ((1 << AP_SOURCE_KINDS) - 1)           \
	 << AP_DEFINED)

/* Masks of those that give memory back, and of those that may also get some for it. */
#define AP_FREEING                                                                                 \
	(1ULL << AP_FREE | 1ULL << AP_DELETE | 1ULL << AP_FREE_SIZED | 1ULL << AP_DALLOCX |        \
	 1ULL << AP_SDALLOCX | 1ULL << AP_MUNMAP | AP_EACH_SOURCE << AP_SOURCE_FREE)
#define AP_REALLOCATING                                                                            \
	(1ULL << AP_REALLOC | 1ULL << AP_REALLOCARRAY | 1ULL << AP_RALLOCX | 1ULL << AP_XALLOCX |  \
	 1ULL << AP_MREMAP | 1ULL << AP_BRK | AP_EACH_SOURCE << AP_SOURCE_REALLOC)

/* How the calls of a defined source and those of other functions beneath them count. */
enum ap_nesting {
	AP_NESTING_NONE, /* no defined source */
	AP_NESTING_OUTERMOST, /* the source's call counts, and none beneath it but of sources that are beside */
	AP_NESTING_BESIDE, /* both count */
};

/* Whose blocks those of a defined source are, so that one address may be a block of several: malloc's, those of
 * source + 1 alone, or nobody's, which are not followed. */
#define AP_BLOCKS_OF_MALLOC 0
#define AP_NO_BLOCKS	    0xff

/* What a function returns. */
enum ap_result {
	AP_RESULT_POINTER,	 /* the block, or null */
	AP_RESULT_FREES,	 /* the same; where it is null the old block has been freed, too */
	AP_RESULT_SIZE_IN_PLACE, /* the size that the block, which stays where it is, has now */
	AP_RESULT_AT_POINTER, /* anything; the block, or null, is where the pointer argument points */
};

/* Why a call that happened is in no count. Names for people: profile__lost_name(). */
enum ap_lost {
	AP_LOST_RECURSION,  /* the kernel skipped the program (recursion_misses of bpf_prog_info) */
	AP_LOST_NO_SCRATCH, /* every scratch slot that was tried was held by preempted programs */
	AP_LOST_RING_FULL,  /* the stack's frames found no room in the ring buffer */
	AP_LOST_COUNTS_FULL, /* the counter map and the ring buffer behind it were full */
	AP_LOST_UNACCOUNTED, /* no counter and no other reason explains it; found by user space */
	AP_LOST_REASONS,
};

/* How a stack's unwinding ended; everything but AP_END_COMPLETE is an incomplete stack. */
enum ap_stack_end {
	AP_END_COMPLETE,   /* the outermost frame was reached */
	AP_END_MAX_DEPTH,  /* more frames than the depth asked for */
	AP_END_NO_MAPPING, /* a return address lies in no executable mapping */
	AP_END_BAD_FRAME,  /* the caller's frame does not lie further up the stack */
	AP_END_UNREADABLE, /* stack memory could not be read */
	AP_END_NO_TABLE,   /* a file's unwind table was not ready, and the stack not sent instead */
	AP_END_UNSUPPORTED,    /* a rule that the tables cannot express, and libdw neither */
	AP_END_FRAME_POINTERS, /* the end was reached, but in part over frame pointers: code without
				* call frame information (a JIT's) */
	AP_END_DUMP_SHORT,     /* libdw went on where the tables ended, but the bytes of stack that
				* were sent did not reach the outermost frame */
	AP_END_OTHER_STACK, /* the caller runs on another stack, and nothing says where that is */
	AP_STACK_ENDS,
};

/* Frames of one stack at the most; --max-depth's upper bound. */
#define AP_MAX_DEPTH 512

/* Sites of all allocators of a run at the most; the index is the uprobe's cookie. */
#define AP_MAX_SITES 2048

#define AP_COMM_LEN 16

/* A place in code: @offset is a file offset inside module @module, or, where @module is 0 because
 * the kernel could not resolve it, an address of the process. */
struct ap_frame {
	__u32 module;
	__u32 flags; /* AP_FRAME_ */
	__u64 offset;
};

/* The thread was interrupted here by a signal: the address is the next instruction itself, not the
 * one behind a call. */
#define AP_FRAME_INTERRUPTED 1
/* The place lies in code that calls are to be within. */
#define AP_FRAME_WITHIN 2

/* Settings that the programs see as read-only data; all fixed before they are loaded. */
struct ap_config {
	__u32 max_depth;    /* frames of a stack that are kept, 1 to AP_MAX_DEPTH */
	__u32 scratch_mask; /* number of scratch slots, a power of two, less one */
	__u32 sent_mask;    /* number of sets of stacks that were sent, likewise */
	__u32 wait_below_bytes; /* a hit that finds the ring buffer full waits until it has less; 0: it does not wait */
	__u32 no_scratch;	/* 1: none may be used */
	__u32 stack_dump;	/* bytes of stack sent at the most where tables do not suffice */
	__u32 follow;		/* 1: children of a followed process are followed */
	__u32 drain_at;		/* new counters after which user space is woken to drain them */
	__u32 dump_below_bytes; /* unread ring buffer bytes above which no stack bytes are sent */
	__u32 wake_at_bytes;	/* unread ring buffer bytes at which user space is woken */
	__u32 live;		/* 1: blocks are followed from their birth to their end */
	__u32 live_stacks;	/* 1: blocks are kept by stack, 0: by function alone */
	__u32 max_dumped;	/* dumps that get a record of their own, with live */
	__u32 starts_closed;	/* 1: a process's window opens when it calls a function */
	__u32 within;		/* 1: only calls with a function on their stack count */
	__u32 regions;		/* 1: calls are counted by the regions that they are in */
	__u32 finds_unprobed;	/* 1: programs that hit no probe are looked at when they end */
	__u32 outermost;	/* 1: there are sources with AP_NESTING_OUTERMOST */
	__u32 stacks;		/* 1: calls are counted by stack */
	/* Sampling by bytes (docs/sampling.md); made by sampling__configure(). */
	__u32 sample;		    /* 1: only sampled calls are followed */
	__u32 sample_unit_shift;    /* unit of ap_estimate.bytes_variance */
	__u64 sample_certain_bytes; /* calls of so many bytes and more are all sampled */
	__u64 sample_rate;	    /* chance of one byte, in 1/2^64 */
	__u64 sample_halvings;	    /* how often a byte halves the chance that none is chosen, in
				* 1/2^(32 + AP_SAMPLE_HALVINGS_SHIFT) */
};

#define AP_SAMPLE_HALVINGS_SHIFT 25

/* Cookies of the probes that tell of the measured window. */
enum ap_gate_event {
	AP_GATE_START = 1, /* the window of the process opens */
	AP_GATE_STOP,	   /* it closes */
	AP_GATE_ENTER,	   /* the function that calls are to be within is entered */
};

/* The measured window, as far as it is one of all processes. */
struct ap_gate {
	__u32 open;    /* set by user space: 0 shuts it for all */
	__u32 started; /* 1: some process's window has been opened */
	__u32 entered; /* 1: the function was called while the window was open */
	__u32 opened;  /* set by user space: it has been open */
	/* Set by user space, 1 from when all probes are set until the first is removed. Marks of regions
	 * outside of that time would be seen in part. */
	__u32 running;
};

/*
 * A hit in code whose unwind table user space is compiling waits for it in the program, as long as AP_WAIT_NS:
 * the target gets slower, and no stack ends early or has to be sent for want of a table. With live, one that needs a
 * record when few are ready waits likewise. What no later hit makes up for waits up to AP_LONG_WAIT_NS: a hit that the
 * kernel cannot tell what is mapped somewhere, since another thread maps memory, and one with a new stack that finds the
 * ring buffer full. That is no longer, as programs at tracepoints are not preempted while they wait. All hits together
 * wait no longer than AP_WAITS_BUDGET_NS after user space was last seen to work, so that a recorder that was stopped, or
 * gets no processor, holds nobody up for longer; to read and compile the largest libraries from a slow disk takes some
 * seconds.
 */
#define AP_WAIT_NS	   10000000
#define AP_LONG_WAIT_NS	   100000000
#define AP_WAITS_BUDGET_NS 5000000000

struct ap_waits {
	__s64 left_ns;	 /* of the budget; user space fills it up */
	__u32 n_waiting; /* hits that wait now */
	__u32 most;	 /* hits that may at a time: each holds a scratch slot; 0: none may */
	__u32 module;	 /* whose table the last of them waits, or waited, for */
	__u32 pad;	 /* 0 */
	__u64 count;	 /* waits so far, */
	__u64 total_ns;	 /* and how long they took */
};

#define AP_MAX_WITHIN_RANGES 16

/* Code of one file that calls are to be within. */
struct ap_within {
	__u32 n;
	__u32 pad; /* 0 */
	struct ap_within_range {
		__u64 start; /* file offset */
		__u64 size;  /* bytes */
	} ranges[AP_MAX_WITHIN_RANGES];
};

/* Slots that a program tries to claim: its thread's own and those behind it. */
#define AP_SCRATCH_TRIES 8

/* Upper bound of ap_config.stack_dump; the rest of the last page comes along. */
#define AP_MAX_STACK_DUMP 16384

/* Module id of the vDSO, which is no file. */
#define AP_MODULE_VDSO 1

/* What a program must know of the site that was hit; the uprobe's cookie is its index. */
struct ap_site {
	__u64 probe_vaddr; /* ELF virtual address of the probed instruction */
	__u64 text_start;  /* ELF virtual addresses of the allocator's code */
	__u64 text_end;
	__u32 allocator;  /* index of the allocator, from 0 */
	__u32 function;	  /* enum ap_function */
	__u32 tail_calls; /* bit mask of the functions that this one may jump to */
	__u32 tail_called; /* 1: another function of the allocator, or of the C library, may jump to this one */
	__u32 recorded; /* 1: `record` was asked for this function or one of its other names */
	__u32 returns;	/* 1: its returns are probed */
	/* 1: the fields below say what its arguments are, and which hits are internal; 0: as in a C library */
	__u32 described;
	/* Numbers of arguments, from 1; 0: it has none. */
	__u8 size_argument, count_argument, pointer_argument;
	__u8 result;	  /* enum ap_result */
	__u8 may_jump;	  /* 1: it may end in a jump to another probed function, */
	__u8 must_jump;	  /* 1: always */
	__u8 own;	  /* 1: no request, but what the allocator does for itself */
	__u8 behind;	  /* AP_BEHIND_: what is not the argument itself but where that points */
	__u8 nesting;	  /* enum ap_nesting */
	__u8 blocks;	  /* AP_BLOCKS_OF_MALLOC, AP_NO_BLOCKS, or source + 1 */
	__u8 by_name;	  /* 1: it ends blocks where the name in its first argument says so */
	__u8 pad;	  /* 0 */
	__u64 size_bytes; /* of each request, where no argument says it; else 0 */
};

#define AP_BEHIND_SIZE	  1
#define AP_BEHIND_COUNT	  2
#define AP_BEHIND_POINTER 4

/* Where a USDT probe's argument is. */
enum ap_operand_kind {
	AP_OPERAND_NONE, /* it has none */
	AP_OPERAND_CONSTANT,
	AP_OPERAND_REGISTER,
	AP_OPERAND_MEMORY, /* at base + index << shift + value */
};

#define AP_NO_REGISTER 0xffff

struct ap_operand {
	__s64 value; /* the constant, or what is added to an address */
	__u16 base,
		index; /* registers, as offsets in the kernel's struct pt_regs, or AP_NO_REGISTER */
	__u8 kind;     /* enum ap_operand_kind */
	__u8 shift;    /* of the index */
	__u8 bytes;    /* that the argument has: 1, 2, 4 or 8 */
	__u8 is_signed;
	__u8 is_second; /* 1: the register's second byte (ah) */
	__u8 pad[7];	/* 0 */
};

/* What a USDT probe that is a site tells, by the index of that. */
struct ap_usdt {
	struct ap_operand size, count, pointer; /* pointer: the block that is given back */
	struct ap_operand result; /* the block that is handed out, or none: it is not known */
};

/* Key of the set of return addresses that make a hit internal. */
struct ap_internal_return {
	__u64 vaddr; /* ELF virtual address behind a call instruction of the allocator's file */
	__u32 allocator;
	__u32 pad; /* 0 */
};

/* What `stat` counts, per site and CPU. A site's hits are calls + internal. */
struct ap_site_counts {
	__u64 calls;
	__u64 internal;
	__u64 size_bytes;	/* asked for by calls; 0 for a product that overflows */
	__u64 fresh;		/* realloc(NULL, n) and reallocarray(NULL, …) among calls */
	__u64 fresh_size_bytes; /* asked for by these */
	__u64 released;		/* realloc(p, 0) among calls, p not NULL */
	__u64 null;		/* free(NULL) among calls */
	/* Calls that the kernel refused, and bytes that were given back to it; 0 but for mappings. */
	__u64 failed;
	__u64 returned_bytes;
};

/* Why a call that was counted is not known to have got memory or not, or its block is not followed.
 * Names for people: profile__untracked_name(). */
enum ap_untracked {
	AP_UNTRACKED_LIVE_FULL,	   /* as many blocks as are allowed were live */
	AP_UNTRACKED_NO_MEMORY,	   /* the kernel had no memory for the block's entry */
	AP_UNTRACKED_NESTED,	   /* within too many others of its thread that had not returned */
	AP_UNTRACKED_THREADS_FULL, /* no room for its thread */
	AP_UNTRACKED_NO_RETURN,	   /* the allocator's returns cannot be probed */
	AP_UNTRACKED_POOL, /* it goes with its pool, which the source's definition does not tell of */
	AP_UNTRACKED_REASONS,
};

/* Plain counters of a run, per CPU. */
enum ap_stat {
	AP_STAT_EVENTS,	    /* calls of recorded functions by followed processes */
	AP_STAT_INTERNAL,   /* internal hits of recorded functions */
	AP_STAT_RELABELLED, /* calls counted under the function that they tail-called, as the
			     * note of the tail call found no room */
	AP_STAT_PROCESSES_UNNOTICED, /* process records that found no room in the ring buffer */
	AP_STAT_PROCESSES_LOST,	     /* processes that could not be followed: the set was full */
	AP_STAT_UNPROBED,    /* programs that took memory from the kernel and hit no probe */
	AP_STAT_UNDECIDED,   /* calls whose stack ends before it tells whether they are within */
	AP_STAT_NOT_SAMPLED, /* calls of recorded functions that sampling passed by */
	AP_STAT_NOT_NESTED, /* calls of sources whose note found no room: what is beneath them counts */
	AP_STAT_LOST,	    /* the first of AP_LOST_REASONS counters */
	/* With live; docs/live.md. */
	AP_STAT_ALLOCATIONS = AP_STAT_LOST + AP_LOST_REASONS, /* calls that returned memory */
	AP_STAT_ALLOCATED_BYTES,
	AP_STAT_FAILED,	       /* calls that returned none */
	AP_STAT_RELEASED,      /* realloc(p, 0) that freed and returned none */
	AP_STAT_UNFINISHED,    /* calls that never returned */
	AP_STAT_FREES,	       /* blocks that ended, by whatever function */
	AP_STAT_FREED_BYTES,   /* theirs */
	AP_STAT_DEALLOCATIONS, /* those of them that no other block came in the place of */
	AP_STAT_DEALLOCATED_BYTES,
	AP_STAT_TEMPORARY,
	AP_STAT_TEMPORARY_BYTES,
	AP_STAT_FREES_NULL,
	AP_STAT_FREES_UNKNOWN,	 /* of a block whose birth was not seen */
	AP_STAT_FREES_INHERITED, /* by a forked process, of a block from before the fork */
	AP_STAT_UNMATCHED, /* blocks whose address was handed out again: no free of them was seen */
	AP_STAT_REALLOCATIONS, /* reallocs of a block that returned one */
	AP_STAT_GROWN_BYTES,   /* by reallocations of known blocks */
	AP_STAT_SHRUNK_BYTES,
	AP_STAT_LIFETIMES_LOST, /* ended blocks whose epochs found no room */
	AP_STAT_DROPPED, /* blocks that a realloc that failed kept, and for which there was no room again */
	AP_STAT_HISTOGRAMS_LOST, /* blocks that found no room in a histogram */
	AP_STAT_MAPPINGS_UNSURE, /* calls of munmap and mremap that count although the kernel did not tell in
				  * time what was mapped there */
	AP_STAT_OPERANDS_UNREAD, /* arguments of USDT probes that are in memory which could not be read */
	AP_STAT_UNTRACKED,	 /* the first of AP_UNTRACKED_REASONS counters */
	AP_STAT_REGION_GAP =
		AP_STAT_UNTRACKED + AP_UNTRACKED_REASONS, /* the first of AP_REGION_GAPS */
	AP_STATS = AP_STAT_REGION_GAP + AP_REGION_GAPS,
};

/* Key and value of the counters that `record` aggregates in the kernel. */
struct ap_count_key {
	__u64 stack;		  /* hash over the frames' (module, offset) and the end */
	__u32 process;		  /* process image id */
	__u32 function;		  /* enum ap_function */
	char thread[AP_COMM_LEN]; /* the calling thread's name at the call, padded with zeros */
};

/* With sampling: how many sampled calls or blocks a number is made of, and what they add to its variance. A
 * sampled one stands for `weight` of the same size, and adds weight * (weight - 1). */
struct ap_estimate {
	__u64 samples;
	__u64 variance;	      /* of the number; no more than AP_MAX_SUM */
	__u64 bytes_variance; /* of their bytes, in units of 2^(2 * ap_config.sample_unit_shift);
			       * the same */
};

struct ap_count {
	__u64 calls;
	__u64 size_bytes;
	struct ap_estimate estimate; /* of calls; zeros without sampling */
};

/* In a key's function, with live: its stack is no hash but the number of the dump that has it. */
#define AP_FUNCTION_DUMPED 0x80000000U
/* In a dump's function: its call is no event until the stack has told whether it is within. */
#define AP_FUNCTION_UNDECIDED 0x40000000U

/* Where sums of bytes asked for stop. */
#define AP_MAX_SUM 0x7fffffffffffffffULL

/* Histogram buckets, as PROFILE_BUCKETS: values of that many significant bits. */
#define AP_BUCKETS 65

/* Buckets of a histogram that a record counts itself; when it has met more, the others are in a struct
 * ap_histograms. */
#define AP_SLOTS 8

/* A bucket's tag in a record: 1 + bucket, of the histogram of lifetimes AP_BUCKETS more. 0: the slot is free. */
#define AP_SIZE_TAG	1
#define AP_LIFETIME_TAG (1 + AP_BUCKETS)

/* What became of the memory that the calls of one key got. User space takes it out when the address space has
 * ended: then no program can reach it any more. */
struct ap_blocks {
	__u64 calls;
	__u64 asked_bytes;
	__u64 failed;
	__u64 allocations;
	__u64 size_bytes;
	__u64 frees;
	__u64 freed_bytes;
	__u64 temporary;
	__u64 temporary_bytes;
	/* What was live when the peak's generation @generation began; where that is not the last
	 * one, nothing has changed since before the last. */
	__u64 generation;
	__u64 peak;
	__u64 peak_bytes;
	/* Histograms of the blocks' sizes in bytes and of their lifetimes in nanoseconds. */
	__u64 tags; /* a byte for each of @slots, the lowest first; filled in this order */
	__u64 slots[AP_SLOTS];
	__u32 histograms; /* index of a struct ap_histograms that has the rest, plus 1, or 0 */
	__u32 pad;	  /* 0 */
	/* Estimates for calls, allocations, frees and temporary. Without sampling a record ends before them. */
	struct ap_estimate of_calls, of_allocations, of_frees, of_temporary;
};

/* Bytes of a record without sampling. */
#define AP_BLOCKS_BYTES __builtin_offsetof(struct ap_blocks, of_calls)

struct ap_histograms {
	__u64 buckets[2 * AP_BUCKETS]; /* by tag - 1 */
};

/* Records and histograms come in arrays of that many. */
#define AP_CHUNK_BITS		12
#define AP_CHUNK		(1 << AP_CHUNK_BITS)
#define AP_HISTOGRAM_CHUNK_BITS 8
#define AP_HISTOGRAM_CHUNK	(1 << AP_HISTOGRAM_CHUNK_BITS)

/* Index of a record that there is none of. */
#define AP_NO_RECORD 0xffffffffU

/* Tables of the records' indexes by their keys at the most; each is larger than the one before. */
#define AP_INDEX_TABLES 5

/* Indexes of what user space has given back, at the most. */
#define AP_FREE_INDEXES 65536

/* What is handed out by index, from arrays that user space adds. */
struct ap_pool {
	__u32 ready;  /* that there is room for; set by user space */
	__u32 max;    /* that there may ever be; set by user space */
	__u32 n;      /* begun */
	__s32 n_free; /* of these, given back by user space and not begun again */
};

/* A live block, by where it is. */
struct ap_block_key {
	__u64 address;
	__u32 space;  /* number of the address space */
	__u32 blocks; /* as in struct ap_site */
};

struct ap_block {
	__u64 size_bytes;
	__u64 birth_ns; /* CLOCK_MONOTONIC */
	__u32 record;	/* index */
	__u32 thread;	/* number of the thread that made it, none is used twice */
	__u32 sequence; /* how many it had made then, this one included */
	__u32 weight;	/* blocks that it stands for; 1 without sampling */
};

/* Tables of live blocks at the most; each is larger than the one before. */
#define AP_LIVE_TABLES 8

/* Blocks by the epochs of their birth and death, which are 2^shift nanoseconds long. */
struct ap_lifetime_key {
	__u32 record;
	__u32 shift;
	__u32 born, died;
};

struct ap_lifetime {
	__u64 blocks;
	__u64 size_bytes;
};

/* The length of the first epochs, as a shift: 16 microseconds. */
#define AP_FIRST_EPOCH_SHIFT 14
/* When there are that many they become twice as long. */
#define AP_MAX_EPOCHS 1024

/* Calls of one thread that have not returned, at the most. */
#define AP_MAX_PENDING 4

/* A call between its entry and its return. */
struct ap_pending {
	__u64 sp; /* at the entry, where the return address is */
	__u64 size_bytes;
	__u64 pointer;	/* of realloc, the old block; of posix_memalign, where the new one is put */
	__u64 entry_ns; /* CLOCK_MONOTONIC, with @old */
	struct ap_block old; /* what realloc has taken out */
	__u32 record;	     /* index or AP_NO_RECORD: the call was lost */
	__u32 space;
	__u8 function; /* enum ap_function */
	__u8 has_old;
	__u8 moves; /* realloc of a block */
	__u8 overflows;
	__u8 outside;  /* of the measured window */
	__u8 result;   /* enum ap_result */
	__u8 blocks;   /* as in struct ap_site */
	__u8 pad;      /* 0 */
	__u32 regions; /* set of regions that it is in */
	__u32 weight;  /* calls that it stands for; 1 without sampling */
	__u32 pad2;    /* 0 */
};

struct ap_thread {
	__u32 number;
	__u32 sequence;
	__u32 n_pending;
	__u32 pad;
	struct ap_pending pending[AP_MAX_PENDING];
};

/* What all programs share of a run with live; user space reads it any time. */
struct ap_live {
	/* Set by user space. */
	__u64 start_ns;	      /* CLOCK_MONOTONIC; epochs count from here */
	__u64 grow_at;	      /* entries in the tables at which user space is woken */
	__u32 n_tables;	      /* of live blocks */
	__u32 n_index_tables; /* of records */
	__u32 stopped;	      /* 1: nothing is counted any more */
	struct ap_pool records, histograms;
	__u32 n_dumps;
	__u32 n_threads;
	__u32 last_space;
	__u32 epoch_shift;
	/* Of all processes that have not ended. */
	__s64 size_bytes;
	__s64 blocks;
	__s64 entries;	  /* in the tables */
	__u64 max_bytes;  /* most that size_bytes has been */
	__u64 mark_bytes; /* size_bytes when the last generation began */
	__u64 generation; /* of the peak */
	__s64 left_bytes; /* what was live when the last process ended */
	__s64 left_blocks;
};

_Static_assert(sizeof(struct ap_block_key) == 16, "keys have no padding");
_Static_assert(sizeof(struct ap_lifetime_key) == 16, "keys have no padding");
_Static_assert(sizeof(struct ap_block) == 32, "an entry of the tables has 96 bytes");
_Static_assert(sizeof(struct ap_frame) == 16, "frames are copied as they are");
_Static_assert(sizeof(struct ap_count_key) == 32, "keys have no padding");
_Static_assert(sizeof(struct ap_internal_return) == 16, "keys have no padding");

#endif
