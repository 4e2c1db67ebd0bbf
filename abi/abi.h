/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Types, limits and map values that the BPF programs and user space share. The data file stores
 * some of these numbers.
 */
#ifndef ALLOCPROF_ABI_H
#define ALLOCPROF_ABI_H

#include <linux/types.h>

#include "function_abi.h"
#include "region_abi.h"
#include "wait_abi.h"

/* Whether a call of a defined allocator counts together with the allocator calls made beneath it. */
enum ap_nesting {
	AP_NESTING_NONE, /* not a defined allocator, or a function of which each call counts, whoever makes it */
	/* Calls beneath a call of the definition do not count, except calls of AP_NESTING_BESIDE
	 * definitions. */
	AP_NESTING_OUTERMOST,
	AP_NESTING_BESIDE, /* both the definition's call and those beneath it count */
};

/* Namespace of a defined allocator's block addresses: malloc's; one of its own (definition + 1),
 * so that one address may be a block in several; or none, in which case its blocks are not
 * followed. Functions that are only counted hand out nothing. */
#define AP_BLOCKS_OF_MALLOC 0
#define AP_ONLY_COUNTED	    0xfe
#define AP_NO_BLOCKS	    0xff

/* The result of a function that allocates: its return value, or the place of the block. */
enum ap_result {
	AP_RESULT_POINTER, /* the block, or NULL */
	AP_RESULT_FREES,   /* the block, or NULL; with NULL the old block has been freed, too */
	AP_RESULT_SIZE_IN_PLACE, /* the block's new size; the block does not move */
	/* Any value; the block, or NULL, is where the pointer argument points to. */
	AP_RESULT_AT_POINTER,
};

/* Why a call that happened was not counted. profile__lost_name() has the printable names. */
enum ap_lost {
	AP_LOST_RECURSION,  /* the kernel skipped the program (recursion_misses of bpf_prog_info) */
	AP_LOST_NO_SCRATCH, /* preempted programs held every scratch slot that was tried */
	AP_LOST_RING_FULL,  /* the ring buffer had no room for the stack's frames */
	AP_LOST_COUNTS_FULL, /* the counter map and the ring buffer were full */
	AP_LOST_NO_ROOM,     /* the file system of the memory that processes share was full */
	AP_LOST_UNSEEN,	     /* page faults that the kernel counted and no program saw */
	AP_LOST_UNACCOUNTED, /* user space found a difference that no counter explains */
	AP_LOST_REASONS,
};

/* How a stack's unwinding ended; everything but AP_END_COMPLETE is an incomplete stack. */
enum ap_stack_end {
	AP_END_COMPLETE,   /* the outermost frame was reached */
	AP_END_MAX_DEPTH,  /* more frames than --max-depth */
	AP_END_NO_MAPPING, /* a return address lies in no executable mapping */
	AP_END_BAD_FRAME,  /* the caller's frame does not lie higher on the stack */
	AP_END_UNREADABLE, /* stack memory could not be read */
	AP_END_NO_TABLE,   /* the unwind table was not ready, and no user-stack snapshot was sent */
	AP_END_UNSUPPORTED, /* neither the tables nor libdw can express the rule */
	/* The outermost frame was reached, but some steps followed frame pointers, through code
	 * without call frame information (a JIT's). */
	AP_END_FRAME_POINTERS,
	/* libdw continued where the tables ended, but the user-stack snapshot did not reach the
	 * outermost frame. */
	AP_END_DUMP_SHORT,
	AP_END_OTHER_STACK, /* the caller runs on another stack, whose address is unknown */
	AP_STACK_ENDS,
};

/* Maximum number of frames of one stack; upper bound of --max-depth. */
#define AP_MAX_DEPTH 512

/* Maximum number of sites of all allocators; the uprobe's cookie is the site's index. */
#define AP_MAX_SITES 2048

#define AP_COMM_LEN 16

/* The finalizer of MurmurHash3: every input bit affects every bit of the result. Hashes of stacks are made by it. */
static inline __attribute__((always_inline)) __u64 ap_stack__mix(__u64 value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	value ^= value >> 33;
	return value;
}

/* A code address. @offset is a file offset in @module or, if @module is 0 because the kernel could
 * not resolve the address, a virtual address of the process. */
struct ap_frame {
	__u32 module;
	__u32 flags; /* AP_FRAME_ */
	__u64 offset;
};

/* A signal interrupted the thread in this frame: @offset is the next instruction itself, not a
 * return address. */
#define AP_FRAME_INTERRUPTED 1
/* The address lies in a function of --within. */
#define AP_FRAME_WITHIN 2
/* A frame of an interpreter of Python. @module is 0, and @offset the id in a struct ap_python_record; 0: frames of
 * Python that could not be read belong here. */
#define AP_FRAME_PYTHON 4
/* No frame of the stack: an async function of Swift that awaits the one of the next inner frame, and will go on at @offset. */
#define AP_FRAME_ASYNC 8

/* Read-only settings of the BPF programs; user space sets them before load. */
struct ap_config {
	__u32 max_depth;    /* frames kept of a stack, up to AP_MAX_DEPTH; 0: none is looked for */
	__u32 scratch_mask; /* number of scratch slots, a power of two, minus 1 */
	__u32 page_shift;   /* binary logarithm of the size of a page */
	__u32 sent_mask;    /* number of sets in stacks_sent, a power of two, minus 1 */
	/* A hit that finds the ring buffer full waits until fewer bytes are unread; 0: no wait. */
	__u32 wait_below_bytes;
	__u32 no_scratch; /* 1: no scratch slot may be claimed (--inject) */
	__u32 stack_dump; /* maximum bytes of a user-stack snapshot; 0: none is sent */
	__u32 follow;	  /* 1: follow children of a followed process */
	/* joins: 1: a process that executes a program is followed from then on if its name matches the
	 * pattern @joins_name, with * and ?, or that is empty, and if it is in the control group of the
	 * map joined_group, or @joins_group is 0, and its real user is @joins_user, or @joins_any_user is 1. */
	__u32 joins, joins_group, joins_user, joins_any_user;
	char joins_name[AP_COMM_LEN];
	__u32 drain_at; /* number of new counters at which user space is woken to drain them */
	/* User-stack snapshots are sent only while fewer bytes of the ring buffer are unread than
	 * this. */
	__u32 dump_below_bytes;
	__u32 wake_at_bytes; /* unread ring buffer bytes at which user space is woken */
	__u32 live;	     /* 1: follow blocks from allocation to free */
	__u32 live_stacks;   /* 1: count blocks by stack, 0: by function */
	/* With --live: maximum number of snapshots that get a record of their own. */
	__u32 max_dumped;
	__u32 starts_closed; /* 1: a process's window is closed until it calls the start function */
	__u32 within;	     /* 1: only calls beneath a function of --within count */
	__u32 regions;	     /* 1: count calls by the regions that are open */
	__u32 finds_unprobed; /* 1: check processes that hit no probe when they end */
	__u32 outermost;      /* 1: some definition has AP_NESTING_OUTERMOST */
	__u32 stacks;	      /* 1: count calls by stack */
	__u32 may_fault;      /* 1: the programs at the probes of functions are sleepable */
	__u32 preempts;	      /* 1: several programs at a tracepoint (tracepoint_abi.h) */
	__u32 faults;	      /* 1: count page faults */
	/* borrowed: 1: only processes that this user, of this group, could trace are followed
	 * (user.h). */
	__u32 borrowed, user, group;
	/* Sampling by bytes (docs/sampling.md). ap_sample__configure() sets these fields. */
	__u32 sample;		    /* 1: follow only sampled calls */
	__u32 sample_unit_shift;    /* unit of ap_estimate.bytes_variance */
	__u64 sample_certain_bytes; /* calls of at least this size are always sampled */
	__u64 sample_rate;	    /* probability that one byte is chosen, in 1/2^64 */
	/* log2 of 1 / (probability that one byte is not chosen), in units of 1/2^(32 +
	 * AP_SAMPLE_HALVINGS_SHIFT). */
	__u64 sample_halvings;
};

#define AP_SAMPLE_HALVINGS_SHIFT 25

/* Cookies of the probes that open and close the measured window. */
enum ap_gate_event {
	AP_GATE_START = 1, /* open the process's window */
	AP_GATE_STOP,	   /* close it */
	AP_GATE_ENTER,	   /* a function of --within was entered */
};

/* State of the measured window that all processes share. */
struct ap_gate {
	__u32 open;    /* set by user space; 0: the window is closed for all processes */
	__u32 started; /* 1: the window of some process has been opened */
	__u32 entered; /* 1: a function of --within was entered while the window was open */
	__u32 opened;  /* set by user space; 1: the window has been open */
	/* Set by user space: 1 from the time at which all probes are attached until the first one
	 * is detached. Outside of that time region marks are ignored, since only some of them
	 * would be seen. */
	__u32 running;
};

#define AP_MAX_WITHIN_RANGES 16

/* Ranges of one file's code that belong to functions of --within. */
struct ap_within {
	__u32 n;
	__u32 pad; /* 0 */
	struct ap_within_range {
		__u64 start; /* file offset */
		__u64 size;  /* bytes */
	} ranges[AP_MAX_WITHIN_RANGES];
};

/* How many slots a program tries to claim, from its thread's own slot on. */
#define AP_SCRATCH_TRIES 8

/* Upper bound of ap_config.stack_dump; a snapshot ends at the next page boundary. */
#define AP_MAX_STACK_DUMP 16384

/* Module id of the vDSO, which has no file. */
#define AP_MODULE_VDSO 1

/* A probed location of an allocator; the uprobe's cookie is its index. */
struct ap_site {
	__u64 probe_vaddr; /* ELF virtual address of the probed instruction */
	__u64 text_start;  /* the allocator's code, as ELF virtual addresses */
	__u64 text_end;
	__u32 allocator;  /* index of the allocator */
	__u32 function;	  /* enum ap_function */
	__u32 tail_calls; /* bit mask of the functions that this one may tail-call */
	/* 1: another function of the allocator or of the C library may tail-call this one. */
	__u32 tail_called;
	__u32 recorded; /* 1: -e selects this function or an alias of it */
	__u32 returns;	/* 1: its returns are probed */
	/* 1: the fields below describe arguments and internal calls; 0: as in a C library */
	__u32 described;
	/* The registers of the arguments: the number of the argument that the calling convention
	 * puts there, from 1, or AP_RESULT_REGISTER; 0: the function has no such argument. */
	__u8 size_argument, count_argument, pointer_argument;
	__u8 result;	/* enum ap_result */
	__u8 may_jump;	/* 1: it may tail-call another probed function */
	__u8 must_jump; /* 1: it always tail-calls another probed function */
	__u8 own;	/* 1: the allocator's own maintenance, no request of the application */
	__u8 behind;	/* mask of AP_BEHIND_: arguments that point to the value */
	__u8 nesting;	/* enum ap_nesting */
	__u8 blocks;	/* AP_BLOCKS_OF_MALLOC, AP_ONLY_COUNTED, AP_NO_BLOCKS, or definition + 1 */
	/* 1: it frees blocks only if the name in its first argument says so (mallctl). */
	__u8 by_name;
	/* How many words of 8 bytes SP is below its value at the function's entry. */
	__u8 lowered_words;
	__u64 size_bytes; /* size in bytes of each request if no argument has it, else 0 */
};

/* Stands for the register of results, if an argument is in it. */
#define AP_RESULT_REGISTER 7

#define AP_BEHIND_SIZE	  1
#define AP_BEHIND_COUNT	  2
#define AP_BEHIND_POINTER 4

/* Location of a USDT argument. */
enum ap_operand_kind {
	AP_OPERAND_NONE, /* there is no such argument */
	AP_OPERAND_CONSTANT,
	AP_OPERAND_REGISTER,
	AP_OPERAND_MEMORY, /* in memory at base + (index << shift) + value */
};

#define AP_NO_REGISTER 0xffff

struct ap_operand {
	__s64 value;	   /* the constant, or the displacement */
	__u16 base, index; /* offsets in struct pt_regs, or AP_NO_REGISTER */
	__u8 kind;	   /* enum ap_operand_kind */
	__u8 shift;	   /* log2 of the index's scale */
	__u8 bytes;	   /* width of the argument: 1, 2, 4 or 8 */
	__u8 is_signed;
	__u8 is_second; /* 1: the register's second byte (such as ah) */
	__u8 pad[7];	/* 0 */
};

/* Arguments of a USDT probe, indexed by its site. */
struct ap_usdt {
	struct ap_operand size, count, pointer; /* pointer: the block that is freed */
	struct ap_operand result; /* the block that is allocated; AP_OPERAND_NONE: unknown */
	/* The bytes that a sampled call stands for; AP_OPERAND_NONE: its own. */
	struct ap_operand weight;
};

/* Key of the set of return addresses whose calls are internal. */
struct ap_internal_return {
	/* ELF virtual address of the instruction after a call in the allocator's file. */
	__u64 vaddr;
	__u32 allocator;
	__u32 pad; /* 0 */
};

/* Counters of `stat`, per site and CPU. A site's hits are calls + internal. */
struct ap_site_counts {
	__u64 calls;
	__u64 internal;
	__u64 size_bytes; /* bytes that calls requested; a product that overflows adds 0 */
	/* Number of calls, among @calls, that are realloc(NULL, n) or reallocarray(NULL, ...). */
	__u64 fresh;
	__u64 fresh_size_bytes; /* bytes that fresh calls requested */
	__u64 released;		/* how many of calls are realloc(p, 0) with p not NULL */
	__u64 null;		/* how many of calls are free(NULL) */
	/* Only mappings: number of system calls that failed, and bytes returned to the kernel. */
	__u64 failed;
	__u64 returned_bytes;
};

/* Why the result of a counted call is unknown, or its block is not followed.
 * profile__untracked_name() has the printable names. */
enum ap_untracked {
	AP_UNTRACKED_LIVE_FULL,	   /* the limit of live blocks was reached */
	AP_UNTRACKED_NO_MEMORY,	   /* the kernel had no memory for the block's entry */
	AP_UNTRACKED_NESTED,	   /* the thread had AP_MAX_PENDING calls that had not returned */
	AP_UNTRACKED_THREADS_FULL, /* the map of threads was full */
	AP_UNTRACKED_NO_RETURN,	   /* the allocator's returns cannot be probed */
	/* The block ends with its pool, and the definition does not describe that end. */
	AP_UNTRACKED_POOL,
	AP_UNTRACKED_NO_ROOM, /* the file system of the memory that processes share was full */
	AP_UNTRACKED_REASONS,
};

/* Scalar counters of a run, per CPU. */
enum ap_stat {
	AP_STAT_EVENTS,	  /* calls of recorded functions by followed processes */
	AP_STAT_INTERNAL, /* internal hits of recorded functions */
	/* Calls that were counted under the function that they tail-called, since the map had no
	 * room to note the tail call. */
	AP_STAT_RELABELLED,
	AP_STAT_PROCESSES_UNNOTICED, /* process records for which the ring buffer was full */
	AP_STAT_PROCESSES_LOST,	     /* processes not followed since the map was full */
	AP_STAT_PROCESSES_REFUSED,   /* programs not followed since the user could not trace them */
	AP_STAT_UNPROBED, /* processes that took memory from the kernel and hit no probe */
	/* Calls whose incomplete stack may lack a frame of a --within function. */
	AP_STAT_UNDECIDED,
	/* Calls for AP_IMPOSSIBLE_BYTES or more, or for a product of count and size that overflows. */
	AP_STAT_IMPOSSIBLE,
	AP_STAT_NOT_SAMPLED, /* calls of recorded functions that were not sampled */
	/* Calls of AP_NESTING_OUTERMOST definitions that could not be noted, so that calls beneath
	 * them count, too. */
	AP_STAT_NOT_NESTED,
	AP_STAT_LOST, /* the first of AP_LOST_REASONS counters */
	/* The counters down to AP_STAT_HISTOGRAMS_LOST are for --live; docs/live.md. */
	AP_STAT_ALLOCATIONS = AP_STAT_LOST + AP_LOST_REASONS, /* calls that returned memory */
	AP_STAT_ALLOCATED_BYTES,
	AP_STAT_FAILED,	       /* calls that returned NULL */
	AP_STAT_RELEASED,      /* realloc(p, 0) that freed p and returned NULL */
	AP_STAT_UNFINISHED,    /* calls that never returned */
	AP_STAT_FREES,	       /* ended blocks, by any function */
	AP_STAT_FREED_BYTES,   /* bytes of ended blocks */
	AP_STAT_DEALLOCATIONS, /* ended blocks, without those that realloc replaced */
	AP_STAT_DEALLOCATED_BYTES,
	AP_STAT_TEMPORARY,
	AP_STAT_TEMPORARY_BYTES,
	AP_STAT_FREES_NULL,
	/* Frees of a block whose allocation was not seen, by family of the function: the first of
	 * AP_FAMILIES counters. */
	AP_STAT_FREES_UNKNOWN,
	/* Frees by a forked process of a block from before the fork. */
	AP_STAT_FREES_INHERITED = AP_STAT_FREES_UNKNOWN + AP_FAMILIES,
	AP_STAT_UNMATCHED, /* blocks whose address was allocated again, without a free in between */
	AP_STAT_REALLOCATIONS, /* reallocs of a block that returned a block */
	AP_STAT_GROWN_BYTES,   /* bytes that reallocs added to known blocks */
	AP_STAT_SHRUNK_BYTES,
	/* Ended blocks that are in no lifetime counter: map and ring buffer were full. */
	AP_STAT_LIFETIMES_LOST,
	/* Blocks that a failed realloc kept, and for which the tables were full when it put them
	 * back. */
	AP_STAT_DROPPED,
	AP_STAT_HISTOGRAMS_LOST, /* blocks that are in no histogram for want of room */
	/* munmap and mremap calls counted although bpf_find_vma() did not report in time what was
	 * mapped there. */
	AP_STAT_MAPPINGS_UNSURE,
	AP_STAT_MAPPING_CHANGES, /* mapping records that were sent */
	/* Changes of mappings for which the ring buffer was full: which mappings are live is not
	 * known. */
	AP_STAT_MAPPING_CHANGES_LOST,
	AP_STAT_OPERANDS_UNREAD, /* USDT arguments in memory that could not be read */
	AP_STAT_CALLS_UNREAD, /* return addresses, arguments and results in memory that could not be read */
	AP_STAT_UNTRACKED, /* the first of AP_UNTRACKED_REASONS counters */
	AP_STAT_REGION_GAP =
		AP_STAT_UNTRACKED + AP_UNTRACKED_REASONS, /* the first of AP_REGION_GAPS */
	AP_STATS = AP_STAT_REGION_GAP + AP_REGION_GAPS,
};

/* Counters of a set of open regions, per CPU. */
struct ap_region_counts {
	struct ap_site_counts functions[AP_FUNCTIONS];
	__u64 stats[AP_STATS]; /* with live: results of calls, and freed blocks */
};

/* Key and value of the counters that `record` keeps in the kernel. */
struct ap_count_key {
	__u64 stack;		  /* hash of the frames' (module, offset) and of the end */
	__u32 process;		  /* program id */
	__u32 function;		  /* enum ap_function */
	char thread[AP_COMM_LEN]; /* the calling thread's name at the call, padded with zeros */
};

/* With sampling: the number of sampled calls or blocks behind an estimate, and its variance. A
 * sample stands for `weight` calls or blocks of its size, and adds weight * (weight - 1) to the
 * variance. */
struct ap_estimate {
	__u64 samples;
	__u64 variance; /* variance of the number; saturates at AP_MAX_SUM */
	/* Variance of the bytes, in units of 2^(2 * ap_config.sample_unit_shift); saturates at
	 * AP_MAX_SUM. */
	__u64 bytes_variance;
};

struct ap_count {
	__u64 calls;
	__u64 size_bytes;
	struct ap_estimate estimate; /* estimate of calls; 0 without sampling */
};

/* Flag in a key's function, with --live: `stack` is not a hash but the number of the user-stack
 * snapshot. */
#define AP_FUNCTION_DUMPED 0x80000000U
/* Flag in a user-stack snapshot's function: user space counts the call only if the unwound stack
 * has a frame of a --within function. */
#define AP_FUNCTION_UNDECIDED 0x40000000U

/* Sums of requested bytes saturate here. */
#define AP_MAX_SUM 0x7fffffffffffffffULL

/* No process can have a block of this size, 128 TiB, so a request for it fails. It counts as a
 * call, but its bytes are in no sum, since they would exceed everything else there. */
#define AP_IMPOSSIBLE_BYTES (1ULL << 47)

/* Histogram buckets, like PROFILE_BUCKETS: bucket n has the values of n significant bits. */
#define AP_BUCKETS 65

/* Histogram buckets that a record has room for; further ones are in a struct ap_histograms. */
#define AP_SLOTS 8

/* Tag of a bucket in a record: first tag of its histogram + bucket. 0: the slot is free. */
#define AP_SIZE_TAG	1
#define AP_LIFETIME_TAG (1 + AP_BUCKETS)

/* Statistics of the allocations of one key. User space takes the record out when the address space
 * has ended and no program can reach it any more. */
struct ap_blocks {
	__u64 calls;
	__u64 asked_bytes;
	__u64 failed;
	__u64 allocations;
	__u64 size_bytes;
	__u64 frees, freed_bytes;
	__u64 temporary, temporary_bytes;
	/* Live blocks and bytes when peak generation @generation began. If @generation is not the
	 * last one, the record has not changed since before the last one began. */
	__u64 generation;
	__u64 peak;
	__u64 peak_bytes;
	/* Histograms of the blocks' sizes in bytes and of their lifetimes in nanoseconds. */
	__u64 tags; /* one byte per slot, the lowest first; filled in this order */
	__u64 slots[AP_SLOTS];
	__u32 histograms; /* 1 + index of a struct ap_histograms with further buckets, or 0 */
	__u32 pad;	  /* 0 */
	/* Blocks for which a realloc by the same thread from the same stack returned a larger one. */
	__u64 grown, grown_bytes;
	__u64 freed_by_others; /* frees by other threads than the one that has allocated */
	/* Estimates of calls, allocations, frees and temporary; records have none without
	 * sampling. */
	struct ap_estimate of_calls, of_allocations, of_frees, of_temporary;
};

/* Returns the record's counter of the bucket @tag, from 1; a tag that has none gets a free slot.
 * NULL: all slots are taken. */
static inline __attribute__((always_inline)) __u64 *ap_blocks__slot(struct ap_blocks *blocks,
								    __u32 tag)
{
	for (int i = 0; i < AP_SLOTS; i++) {
		__u32 used = blocks->tags >> 8 * i & 0xff;

		if (!used) {
			blocks->tags |= (__u64)tag << 8 * i;
			used = tag;
		}
		if (used == tag)
			return &blocks->slots[i];
	}
	return 0;
}

/* Size of a record without sampling. */
#define AP_BLOCKS_BYTES __builtin_offsetof(struct ap_blocks, of_calls)

struct ap_histograms {
	__u64 buckets[2 * AP_BUCKETS]; /* indexed by tag - 1 */
};

/* Number of records and of histograms per map. */
#define AP_CHUNK_BITS		12
#define AP_CHUNK		(1 << AP_CHUNK_BITS)
#define AP_HISTOGRAM_CHUNK_BITS 8
#define AP_HISTOGRAM_CHUNK	(1 << AP_HISTOGRAM_CHUNK_BITS)

/* Stands for no record. */
#define AP_NO_RECORD 0xffffffffU

/* Maximum number of tables that map keys to record indexes; each is larger than the one before. */
#define AP_INDEX_TABLES 5

/* Maximum number of indexes in the queue of those that user space returned. */
#define AP_FREE_INDEXES 65536

/* Allocator of indexes into arrays that user space adds. */
struct ap_pool {
	__u32 ready;  /* indexes with memory; set by user space */
	__u32 max;    /* upper bound of @ready; set by user space */
	__u32 n;      /* indexes allocated so far */
	__s32 n_free; /* how many of the n indexes user space has returned and nobody uses */
};

/* Address of a live block. */
struct ap_block_key {
	__u64 address;
	__u32 space;  /* number of the address space */
	__u32 blocks; /* as in struct ap_site */
};

struct ap_block {
	__u64 size_bytes;
	__u64 birth_ns; /* CLOCK_MONOTONIC */
	__u32 record;	/* index of the record that counts the block */
	__u32 thread;	/* number of the allocating thread; never reused */
	__u32 sequence; /* number of the thread's allocations, this one included */
	__u32 weight;	/* number of blocks that it stands for; 1 without sampling */
	/* With --events: number that is unique in the run, and that realloc keeps; else 0. */
	__u64 id;
};

/* Maximum number of tables of live blocks; each is larger than the one before. */
#define AP_LIVE_TABLES 8

/* Key of a lifetime counter: the epochs in which the block was allocated and freed, each 2^shift
 * nanoseconds long. */
struct ap_lifetime_key {
	__u32 record;
	__u32 shift;
	__u32 born, died;
};

struct ap_lifetime {
	__u64 blocks;
	__u64 size_bytes;
};

/* log2 of the first epochs' length in nanoseconds: 16 microseconds. */
#define AP_FIRST_EPOCH_SHIFT 14
/* When this many epochs have passed, the length of an epoch doubles. */
#define AP_MAX_EPOCHS 1024

/* Maximum number of calls of one thread that have not returned. */
#define AP_MAX_PENDING 4

/* A call that has not returned. */
struct ap_pending {
	__u64 sp; /* at the entry, where it points to the return address */
	__u64 size_bytes;
	/* realloc: the old block; posix_memalign: the address at which the new one will be stored. */
	__u64 pointer;
	__u64 entry_ns;	     /* CLOCK_MONOTONIC; only with has_old */
	struct ap_block old; /* realloc's old block, out of the tables until the call returns */
	__u32 record;	     /* index of the record; AP_NO_RECORD: the call is not counted */
	__u32 space;
	__u8 function; /* enum ap_function */
	__u8 has_old;
	__u8 moves; /* 1: realloc of a block */
	__u8 overflows;
	__u8 outside;  /* 1: the call is outside of the measured window */
	__u8 result;   /* enum ap_result */
	__u8 blocks;   /* as in struct ap_site */
	__u8 pad;      /* 0 */
	__u32 regions; /* set of the regions that are open */
	__u32 weight;  /* number of calls that it stands for; 1 without sampling */
	__u32 pad2;    /* 0 */
};

struct ap_thread {
	__u32 number;
	__u32 sequence;
	__u32 n_pending;
	__u32 pad;
	struct ap_pending pending[AP_MAX_PENDING];
};

#define AP_CACHE_LINE_BYTES 64
/* State of a run with --live that all programs share; user space may read it at any time. Each
 * group of fields has a cache line of its own, so that hits on other processors do not slow down
 * reads of the first. */
struct ap_live {
	/* Hits read these fields, which seldom change. User space sets those up to @stopped. */
	__u64 start_ns;	      /* CLOCK_MONOTONIC; epochs count from here */
	__u64 grow_at;	      /* number of blocks in the tables at which user space is woken */
	__u32 n_tables;	      /* tables of live blocks; the last may not be in its slot yet */
	__u32 n_index_tables; /* tables of record indexes */
	__u32 stopped;	      /* 1: nothing is counted any more */
	__u32 epoch_shift;
	__u64 mark_bytes; /* size_bytes when the last peak generation began */
	__u64 generation; /* number of the last peak generation */
	/* Read and changed where a stack, thread or process is new. */
	struct ap_pool records __attribute__((aligned(AP_CACHE_LINE_BYTES))), histograms;
	__u32 n_dumps;
	__u32 n_threads;
	__u32 last_space;
	__u32 pad;	  /* 0 */
	__s64 left_bytes; /* bytes live when the last process ended */
	__s64 left_blocks;
	/* Sums over all processes that have not ended; every block changes them. */
	__s64 size_bytes __attribute__((aligned(AP_CACHE_LINE_BYTES)));
	__s64 blocks;
	__s64 entries;	 /* blocks in the tables */
	__u64 max_bytes; /* maximum of size_bytes so far */
};

_Static_assert(sizeof(struct ap_live) == 3 * AP_CACHE_LINE_BYTES, "a cache line for each group");
_Static_assert(sizeof(struct ap_block_key) == 16, "keys have no padding");
_Static_assert(sizeof(struct ap_lifetime_key) == 16, "keys have no padding");
_Static_assert(sizeof(struct ap_block) == 40, "an entry of the tables has 104 bytes, of 128");
_Static_assert(sizeof(struct ap_frame) == 16, "frames are copied as they are");
_Static_assert(sizeof(struct ap_count_key) == 32, "keys have no padding");
_Static_assert(sizeof(struct ap_internal_return) == 16, "keys have no padding");

#endif
