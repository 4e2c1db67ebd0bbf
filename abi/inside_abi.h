/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared memory of a measurement from inside of the processes: the library that is preloaded into them
 * (src/inside) writes it, allocprof (src/preload) creates and reads it. docs/inside.md.
 *
 * The measurement has a directory with
 *
 *	inside.so	symbolic link to the library; LD_PRELOAD names it
 *	other.so	another one, for programs whose calls another engine counts
 *	memory		struct inside_header, and behind it what processes take by adding to @next
 *	tables		unwind tables, which processes map without write permission: INSIDE_TABLES_AT and so on
 *	wake		FIFO; a byte in it wakes allocprof, which has something new to read
 *
 * Both files are sparse. A process maps a piece of `memory` when it needs one; it is referred to by its offset
 * in the file, never by an address. Offset 0 means nothing.
 *
 * Each counter has one writer, a thread, and is only ever added to. A thread that is killed leaves all
 * that it counted up to its last call. What is published, by a state or an offset that is stored last
 * with release semantics, does not change any more. allocprof believes none of it.
 */
#ifndef ALLOCPROF_INSIDE_ABI_H
#define ALLOCPROF_INSIDE_ABI_H

#include "abi.h"
#include "region_abi.h"
#include "unwind_abi.h"

#define INSIDE_MAGIC   0x656469736e497061ULL /* "apInside" */
#define INSIDE_VERSION 11

/* The library as it is installed. */
#define INSIDE_FILE "liballocprof-inside.so"

/* In the directory of a measurement. */
#define INSIDE_LIBRARY "inside.so"
#define INSIDE_OTHER   "other.so"
#define INSIDE_MEMORY  "memory"
#define INSIDE_TABLES  "tables"
#define INSIDE_WAKE    "wake"

/*
 * USDT probe of the library, provider:name. A process passes it with the number of its program in the first
 * argument's register, when it begins to count and before its first call counts: another engine counts its
 * calls until then, and none from then on.
 */
#define INSIDE_BEGINS "allocprof_inside:begins"

/* Longer paths are cut off. */
#define INSIDE_PATH_BYTES 224

/* The size of large pieces is a multiple of this. */
#define INSIDE_PAGE 4096

/* An array whose elements stay where they are: chunk n has INSIDE_FIRST << n of them. */
#define INSIDE_CHUNKS 16
#define INSIDE_FIRST  64

struct inside_array {
	/* Offsets of the chunks; the process that needs a chunk first stores its offset. */
	__u64 chunks[INSIDE_CHUNKS];
	__u32 n;   /* elements that were taken; more than there is room for: those were lost */
	__u32 pad; /* 0 */
};

enum inside_mode {
	INSIDE_COUNT,  /* calls by function */
	INSIDE_RECORD, /* and by stack */
	INSIDE_LIVE,   /* and blocks until they are freed */
};

/* Set by allocprof before the first process begins. */
struct inside_settings {
	__u32 mode;	 /* enum inside_mode */
	__u32 max_depth; /* frames kept of a stack, 1 to AP_MAX_DEPTH */
	__u32 follow;	 /* 1: measure what followed processes execute */
	/* A thread waits for allocprof for so long, and if that has done nothing for so long, no thread does. */
	__u32 wait_ms;
	__u32 max_live_shift; /* LIVE: log2 of the blocks of one process that may be live */
	__u32 stacks;	      /* LIVE: 0: records are of functions; else 1, which RECORD implies */
	__u32 max_records;    /* LIVE: records of all processes; 0: as many as there is room for */
	__u32 within;	      /* 1: only calls beneath a function of --within count */
	__u32 regions;	      /* 1: calls count by the regions that are open, too */
	__u32 pad;	      /* 0 */
	__u64 max_blocks;     /* LIVE: live blocks of all processes, likewise */
	/* CLOCK_MONOTONIC was start_ns when the processor's time stamp counter was start_ticks; a tick has
	 * ns_per_tick / 2^32 nanoseconds. 0: the counter is not used. */
	__u64 start_ns, start_ticks, ns_per_tick;
	__u64 epoch_ns; /* LIVE: begin of the first epoch of lifetimes, CLOCK_MONOTONIC */
	__u64 recorded; /* bit mask of the functions whose calls are counted by stack */
	/* Sampling, as sampling__configure() sets it up; the other members are not used. */
	struct ap_config sampling;
};

/* Table n of a program's live blocks has 1 << (INSIDE_FIRST_BLOCKS + n) slots. */
#define INSIDE_BLOCK_TABLES 16
#define INSIDE_FIRST_BLOCKS 13

/* How a program came to be. */
enum inside_birth {
	INSIDE_BORN_EXEC,     /* the library was loaded */
	INSIDE_BORN_FORK,     /* the copy of a process that was measured */
	INSIDE_BORN_ATTACHED, /* the library was mapped into a process that ran already */
};

/* How it ended, as far as it could say. */
enum inside_end {
	INSIDE_RUNS,   /* or was killed */
	INSIDE_EXITED, /* is about to exit */
	INSIDE_EXECED, /* is about to execute another program */
};

enum inside_state {
	INSIDE_EMPTY, /* taken, and not yet written, or its writer was killed meanwhile */
	INSIDE_READY, /* stored last */
};

/* A program in a process: an exec makes a new one. */
struct inside_program {
	__u32 state;	     /* enum inside_state */
	__u32 birth;	     /* enum inside_birth */
	__u32 pid;	     /* in the process's own PID namespace */
	__u32 parent;	     /* pid of the parent */
	__u32 forked_from;   /* FORK: number of the program, from 1; else 0 */
	__u32 ended;	     /* enum inside_end */
	__u64 begin_ns;	     /* CLOCK_MONOTONIC */
	__u64 pid_namespace; /* inode of that of @pid; 0 if it is not known */
	char comm[AP_COMM_LEN];
	__u64 blocks[INSIDE_BLOCK_TABLES]; /* LIVE: offsets of tables of struct inside_block */
	__u64 end_generation;		   /* LIVE: of the peak, when it ended */
	__u64 end_ns;			   /* CLOCK_MONOTONIC, when it ended */
};

/* What one thread counts. A thread of the same process that begins after this one's end may go on with it. */
struct inside_thread {
	__u32 state;   /* enum inside_state */
	__u32 tid;     /* of the last thread */
	__u32 program; /* number, from 1 */
	__u32 pad;     /* 0 */
	char comm[AP_COMM_LEN];
	__u64 stats[AP_STATS]; /* by enum ap_stat */
	/* By enum ap_function. @internal are calls that the allocator made by the name of a function,
	 * which is not all that a probe would see. */
	struct ap_site_counts functions[AP_DEFINED];
	/* Offset of a table of struct inside_count, with log2 of its room in INSIDE_SHIFT of the offset; 0: none
	 * yet. */
	__u64 counts;
	/* LIVE: likewise of struct inside_record and of struct inside_lifetime. */
	__u64 records, lifetimes;
	__u64 regions; /* offset of a struct inside_thread_regions; 0: it has begun none */
};

/* What one thread counts by region. */
struct inside_thread_regions {
	__u64 begins[AP_MAX_REGIONS]; /* by number of the region */
	__u64 sets
		[AP_MAX_REGION_SETS]; /* by number of the set: offsets of struct inside_region_counts */
};

/* A thread counts here while a set of regions is open. */
struct inside_region_counts {
	struct ap_site_counts functions[AP_DEFINED];
	__u64 stats[AP_STATS]; /* LIVE: as the programs of bpf/ count them by set */
};

/* In place of a struct inside_thread whose process has ended: allocprof has what it counted. */
#define INSIDE_RETIRED 1

#define INSIDE_SHIFT	 63
#define INSIDE_MAX_SHIFT 28

/* Calls of one function with one stack, by one thread. Free if @stack is 0. */
struct inside_count {
	__u64 stack; /* hash, as in struct ap_count_key; stored last */
	__u32 function;
	__u32 pad; /* 0 */
	__u64 calls;
	__u64 size_bytes;
};

/* With sampling; then tables of struct inside_count have these. */
struct inside_sampled_count {
	struct inside_count count;
	struct ap_estimate estimate;
};

/* With LIVE: what one thread has done with the blocks of a stack and function. */
struct inside_record {
	__u64 stack;	/* hash; 0: @record is another thread's, whose blocks this one has freed */
	__u32 function; /* enum ap_function */
	__u32 record;	/* number, from 1; stored last */
	/* The first AP_BLOCKS_BYTES of a struct ap_blocks. Numbers are the thread's own share, also those of
	 * the peak, which may be less than 0. */
	__u64 blocks[AP_BLOCKS_BYTES / 8];
};

/* With sampling; then tables of struct inside_record have these. */
struct inside_sampled_record {
	struct inside_record record;
	struct ap_estimate of_calls, of_allocations, of_frees, of_temporary;
};

struct inside_lifetime {
	struct ap_lifetime_key key;
	struct ap_lifetime lifetime; /* free if it has no blocks */
};

#define INSIDE_BLOCK_NEVER   0 /* the slot was never used */
#define INSIDE_BLOCK_FREED   1
#define INSIDE_BLOCK_WRITTEN 2 /* by a thread, now or when it was killed */

#define INSIDE_BLOCK_UP	       (1ULL << 63)
#define INSIDE_BLOCK_SIZE_BITS 47

struct inside_block {
	__u64 key; /* address << 16 | low bits of the record's number; stored last */
	/* Size in bytes << 16 | high bits of it; with sampling INSIDE_BLOCK_UP, if the weight was rounded up. */
	__u64 size;
	__u64 birth_ns;
	__u32 thread, sequence; /* as in struct ap_block */
};

/* State of all processes with LIVE. */
struct inside_live {
	__u32 n_records; /* numbers that were taken */
	__u32 n_threads;
	__u32 epoch_shift;
	__u32 pad; /* 0 */
	/* The same sums as in struct ap_live. */
	__s64 size_bytes __attribute__((aligned(64)));
	__s64 blocks;
	__s64 entries; /* blocks in the tables; only where their number is limited */
	__u64 max_bytes;
	__u64 mark_bytes __attribute__((aligned(64)));
	__u64 generation;
};

/* A file that is mapped executable in a process. Its id is INSIDE_FIRST_MODULE + its index; one file may have
 * several, since processes that meet it at the same time do not wait for each other. */
struct inside_module {
	__u32 state;  /* enum inside_state */
	__u32 pid;    /* of the process that met it, in its own PID namespace */
	__u32 device; /* as in struct ap_module_record, as /proc/PID/maps has it */
	__u32 pad;    /* 0 */
	__u64 inode;
	__u64 start, end;	      /* of the mapping in that process */
	__u64 offset;		      /* file offset of @start */
	__u64 time_ns;		      /* CLOCK_MONOTONIC */
	char path[INSIDE_PATH_BYTES]; /* of the mapping, cut off where it is longer */
};

#define INSIDE_FIRST_MODULE (AP_MODULE_VDSO + 1)

/* Table n of the set of stacks has 1 << (INSIDE_FIRST_STACKS + n) slots, of which half are used. */
#define INSIDE_STACK_TABLES 12
#define INSIDE_FIRST_STACKS 14

/* A stack that is published; both are stored at once. */
struct inside_stack {
	__u64 hash;   /* 0: free */
	__u64 offset; /* of a struct ap_stack_record and its frames */
};

/* Offsets in the file of unwind tables. */
#define INSIDE_TABLES_AT 0
#define INSIDE_SLICES_AT (1 << 19)
#define INSIDE_RULES_AT	 (1 << 20)
#define INSIDE_CHUNKS_AT (8 << 20)
/* By module: struct ap_within, which is there before the module's table is. */
#define INSIDE_WITHIN_AT    (INSIDE_CHUNKS_AT + (__u64)UNWIND_MAX_CHUNKS * sizeof(struct unwind_chunk))
#define INSIDE_WITHIN_BYTES ((__u64)UNWIND_MAX_MODULES * sizeof(struct ap_within))
#define INSIDE_TABLES_BYTES (INSIDE_WITHIN_AT + INSIDE_WITHIN_BYTES)

/* A process that the library could not be preloaded into, or events that nobody counted. */
enum inside_gap {
	INSIDE_GAP_PROGRAMS, /* processes for whose programs there was no room: their calls are lost */
	INSIDE_GAP_THREADS, /* threads without memory: their calls are lost */
	INSIDE_GAP_EARLY, /* calls before the process, or the thread, has its memory in the file */
	INSIDE_GAP_EXECS, /* execs of programs that the library cannot be preloaded into */
	INSIDE_GAP_MODULES, /* files for which there was no room: no table will come */
	INSIDE_GAP_NAMES, /* threads that are not counted by their own name, since there are too many */
	/* Calls of an allocator's own functions of which not enough is known, and addresses at which such a function's
	 * address could not be replaced. */
	INSIDE_GAP_FUNCTIONS,
	INSIDE_GAP_LOADS, /* loads of libraries that do not find this one's functions: dlmopen(3), RTLD_DEEPBIND */
	INSIDE_GAP_COLLECTED, /* LIVE: processes with a collector, which frees blocks without a call */
	INSIDE_GAP_REPLACED, /* processes that mapped other memory over the library's: it counts there no more */
	INSIDE_GAPS,
};

/* An exec of a program that the library cannot be preloaded into. */
enum inside_refusal {
	INSIDE_REFUSES_STATIC,	/* has no dynamic linker */
	INSIDE_REFUSES_MACHINE, /* of another processor or word size */
	INSIDE_REFUSES_SECURE, /* runs with other privileges: set-user-ID, set-group-ID, capabilities */
	INSIDE_REFUSES_HIDDEN, /* the measurement's directory cannot be reached from the process */
	INSIDE_REFUSES_UNREADABLE, /* cannot be read */
	INSIDE_REFUSES_ALLOCATOR, /* defines malloc itself: it runs, and its calls do not come here */
	INSIDE_REFUSES_SANITIZER,  /* has a sanitizer's allocator, which must be the first one */
	INSIDE_REFUSES_TRANSLATOR, /* runs other programs by translating their code */
	INSIDE_REFUSES_CONFINED, /* runs with a filter of system calls (seccomp) that forbids the library's */
	INSIDE_REFUSALS,
};

/* What becomes of the process that executes such a program. Written by allocprof. */
enum inside_answer {
	INSIDE_NO_ANSWER,
	INSIDE_NOT_BY_OTHER,
	INSIDE_BY_OTHER, /* another engine counts its calls from its exec on */
};

struct inside_refused {
	__u32 state;  /* enum inside_state */
	__u32 reason; /* enum inside_refusal */
	__u32 program; /* that executes it; 0: a child of vfork(2), or another engine counts its calls */
	__u32 pid;
	__u64 pid_namespace;	      /* inode of that of @pid; 0 if it is not known */
	__u32 answer;		      /* enum inside_answer */
	__u32 pad;		      /* 0 */
	char path[INSIDE_PATH_BYTES]; /* cut off where it is longer */
};

/* How often and how long threads have waited for allocprof to make an unwind table or to answer. */
struct inside_waits {
	/* CLOCK_MONOTONIC, when the first one began to wait since allocprof last did something, which sets it to 0. */
	__u64 since_ns;
	__u64 count, total_ns;
};

/* The name that threads are counted by when there are more names than a process has counters for. */
#define INSIDE_OTHER_NAMES "(other names)"

/* A region; its number is its index. */
struct inside_region {
	__u64 key; /* hash of the name, not 0, by which all processes know it; 0: free. Stored first */
	__u32 state; /* enum inside_state; who has not found it ready writes the name, which is the same */
	__u32 pad; /* 0 */
	char name[AP_REGION_NAME_BYTES + 8];
};

/* Regions of all processes. */
struct inside_regions {
	__u64 unnumbered; /* begins of further regions, for which there is no number */
	__u64 unnamed;	  /* begins of regions whose name is none */
	/* The same masks as in struct ap_regions. */
	__u64 masks[AP_MAX_REGION_SETS];
	struct inside_region list[AP_MAX_REGIONS];
};

enum inside_gate {
	INSIDE_CLOSED, /* calls are not counted; frees end blocks that are followed */
	INSIDE_OPEN,
	INSIDE_STOPPED, /* nothing is counted any more */
};

/* allocprof has a thread of a running process call the library to do one of these (struct inside_request). */
enum inside_action {
	INSIDE_ATTACH, /* begin to measure: afterwards all objects call the library's functions */
	INSIDE_DETACH, /* the objects call the functions that they called before */
	INSIDE_CLEAN,  /* unmap what the library has mapped; no thread is within it any more */
};

enum inside_stage {
	INSIDE_STAGE_CALLED,
	/* It is about to take the dynamic linker's lock, which a thread that is stopped may hold: it has changed nothing yet. */
	INSIDE_STAGE_LOCKS,
	INSIDE_STAGE_WORKS,
	INSIDE_STAGE_DONE,    /* it waits for a moment to be taken back */
	INSIDE_STAGE_RETURNS, /* nobody came: it returns to what the thread was doing */
};

/* The library has so many thread-local variables. Where it is mapped into a running process they are thread-specific data of the C
 * library (pthread_key_create(3)), since the static TLS of threads that exist has no room for them. */
#define INSIDE_THREAD_WORDS 2

/*
 * The request that allocprof writes before a thread calls allocprof_attach(), while it holds all other threads, and the results that
 * the function writes into it. It is allocprof_request, in the data of the library; the library's symbol table has both addresses.
 */
struct inside_request {
	__u32 action;	/* enum inside_action */
	__u32 stage;	/* enum inside_stage */
	__s32 result;	/* 0 or a negative errno; -EAGAIN: the dynamic linker is at work */
	__u32 has_keys; /* 1: @keys and @offsets are valid */
	/* Where the pages of struct inside_header are mapped, and the first of the tables; 0: there are none. */
	__u64 memory, tables;
	__u64 linker; /* address of the dynamic linker's struct r_debug */
	/* ATTACH: the process's filters of system calls, @n_filters struct sock_fprog and their instructions, in memory of the
	 * process, which the library unmaps. */
	__u64 filters, filters_bytes, n_filters;
	/* The keys (pthread_key_t), and the offsets of their values from the address in FS. The first ATTACH finds them. */
	__u32 keys[INSIDE_THREAD_WORDS];
	__u64 offsets[INSIDE_THREAD_WORDS];
	__u64 tid_offset; /* likewise of the thread's number, which the C library keeps */
	/* ATTACH: number of words that were changed; DETACH: of those that were changed back. */
	__u64 n_words;
	/* DETACH: number of words that somebody else has changed meanwhile, or that led past the library. */
	__u64 n_lost;
};

struct inside_header {
	__u64 magic;
	__u32 version;
	__u32 header_bytes;
	__u64 size_bytes; /* of the file */
	struct inside_settings settings;
	/* Written by allocprof at any time. */
	/* enum inside_gate; INSIDE_STOPPED also by a process that finds that allocprof was killed */
	__u32 gate __attribute__((aligned(64)));
	/* 1: an exec of a program that the library cannot be preloaded into waits for the answer. */
	__u32 hands_over;
	/* 1: the file system has little room left: before it uses memory a process has the kernel find pages for
	 * all of it, since a store would end it by SIGBUS where there are none. */
	__u32 is_tight;
	/* Written by the processes. */
	__u64 next __attribute__((aligned(64))); /* first byte that is not taken */
	__u64 gaps[INSIDE_GAPS];
	struct inside_array programs;	   /* struct inside_program */
	struct inside_array threads;	   /* __u64, the offset of a struct inside_thread */
	struct inside_array refused;	   /* struct inside_refused */
	struct inside_array modules;	   /* struct inside_module */
	__u64 stacks[INSIDE_STACK_TABLES]; /* offsets of tables of struct inside_stack */
	__u32 n_stacks[INSIDE_STACK_TABLES];
	struct inside_array histograms; /* struct ap_histograms */
	struct inside_live live __attribute__((aligned(64)));
	struct inside_waits waits __attribute__((aligned(64)));
	struct inside_regions regions;
	/* Number of programs that processes executed with the library in LD_PRELOAD, and of programs that began with it, the
	 * command among them. A program between execve(2) and its dynamic linker is in the first number only. */
	__u64 n_injected, n_begun;
};

_Static_assert(sizeof(struct inside_program) == 200, "inside_program is ABI");
_Static_assert(sizeof(struct inside_block) == 32, "inside_block is ABI");
_Static_assert(sizeof(struct inside_record) == 192, "inside_record is ABI");
_Static_assert(sizeof(struct inside_sampled_record) ==
		       sizeof(struct inside_record) + sizeof(struct ap_blocks) - AP_BLOCKS_BYTES,
	       "the estimates follow the blocks as they do in struct ap_blocks");
_Static_assert(sizeof(struct inside_module) == 280, "inside_module is ABI");
_Static_assert(UNWIND_MAX_MODULES * sizeof(struct unwind_table) <= INSIDE_SLICES_AT,
	       "tables have room");
_Static_assert(UNWIND_MAX_SLICES * sizeof(struct unwind_slice) <=
		       INSIDE_RULES_AT - INSIDE_SLICES_AT,
	       "slices have room");
_Static_assert(UNWIND_MAX_RULES_LOADED * sizeof(struct unwind_rule) <=
		       INSIDE_CHUNKS_AT - INSIDE_RULES_AT,
	       "rules have room");
_Static_assert(INSIDE_WITHIN_AT % INSIDE_PAGE == 0, "a mapping can begin there");
_Static_assert(sizeof(struct inside_count) == 32, "inside_count is ABI");
_Static_assert(sizeof(struct inside_refused) == 256, "inside_refused is ABI");

#endif
