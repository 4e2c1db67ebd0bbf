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
 * A process that ALLOCPROF_OUTPUT asks for it keeps `memory` in a file of its own instead, and there is no
 * directory, nor an allocprof beside it: is_own in the settings, docs/inside.md.
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
#include "event_abi.h"
#include "processor_abi.h"
#include "region_abi.h"
#include "unwind_abi.h"

#define INSIDE_MAGIC   0x656469736e497061ULL /* "apInside" */
#define INSIDE_VERSION 18

/* File name of the library as it is installed. */
#define INSIDE_FILE "liballocprof-inside.so"

/* File names in the directory of a measurement. */
#define INSIDE_LIBRARY "inside.so"
#define INSIDE_OTHER   "other.so"
#define INSIDE_MEMORY  "memory"
#define INSIDE_TABLES  "tables"
#define INSIDE_WAKE    "wake"

/*
 * USDT probe of the library, provider:name, that a process passes when it begins to count, and
 * before its first call counts. The first argument's register has the number of its program.
 * Another engine counts the process's calls until then, and none from then on.
 */
#define INSIDE_BEGINS "allocprof_inside:begins"

/* Room for a path; longer ones are truncated. */
#define INSIDE_PATH_BYTES 224

/* Large pieces of memory have a multiple of this size. */
#define INSIDE_PAGE AP_MOST_PAGE

/* An array whose elements stay where they are: chunk n has INSIDE_FIRST << n of them. */
#define INSIDE_CHUNKS 16
#define INSIDE_FIRST  64

struct inside_array {
	/* Offsets of the chunks; the process that needs a chunk first stores its offset. */
	__u64 chunks[INSIDE_CHUNKS];
	/* Number of elements that were taken; elements beyond the chunks' room were lost. */
	__u32 n;
	__u32 pad; /* 0 */
};

enum inside_mode {
	INSIDE_COUNT,  /* calls are counted by function */
	INSIDE_RECORD, /* and by stack */
	INSIDE_LIVE,   /* and blocks are followed until they are freed */
};

/* Whether events are stored (--events), and whether a thread waits for room to store one. */
enum inside_events_mode {
	INSIDE_NO_EVENTS,
	INSIDE_EVENTS,		 /* an event for which there is no room is lost */
	INSIDE_THROTTLED_EVENTS, /* its thread waits for allocprof first */
};

/* Settings that allocprof writes before the first process begins. */
struct inside_settings {
	__u32 mode;	 /* enum inside_mode */
	__u32 max_depth; /* frames kept of a stack, up to AP_MAX_DEPTH; 0: none is looked for */
	__u32 follow;	 /* 1: also measure the programs that measured processes execute */
	/* How long a thread waits for allocprof. When allocprof has done nothing for so long, no
	 * thread waits any more. */
	__u32 wait_ms;
	__u32 max_live_shift; /* LIVE: log2 of the largest number of live blocks of one process */
	/* LIVE: 0: one record per function, 1: records by stack, too; RECORD implies 1. */
	__u32 stacks;
	/* LIVE: largest number of records of all processes; 0: as many as there is room for. */
	__u32 max_records;
	__u32 within;  /* 1: only calls beneath a function of --within count */
	__u32 regions; /* 1: calls are also counted by the regions that are open */
	/* 1: the file is that of one process, which has made it; allocprof reads it later. */
	__u32 is_own;
	__u32 events;	   /* LIVE: enum inside_events_mode */
	__u32 event_parts; /* largest number of parts of a program's chunks of events */
	__u32 arguments;   /* 1: programs tell their arguments */
	__u32 pad;	   /* 0 */
	/* LIVE: largest number of live blocks of all processes; 0: no limit. */
	__u64 max_blocks;
	/* The processor's time stamp counter was start_ticks when CLOCK_MONOTONIC was start_ns; a
	 * tick has ns_per_tick / 2^32 nanoseconds. 0: the counter is not used. With is_own the process
	 * sets ns_per_tick when it knows it. */
	__u64 start_ns, start_ticks, ns_per_tick;
	__u64 epoch_ns; /* LIVE: when the first epoch of lifetimes began, CLOCK_MONOTONIC */
	__u64 recorded; /* bit mask of the functions whose calls are counted by stack */
	/* Sampling, as ap_sample__configure() sets it up. Only the members for sampling are used. */
	struct ap_config sampling;
};

/* How many functions may only be counted, and room for the names of one and of its variables. */
#define INSIDE_COUNTED	  64
#define INSIDE_NAME_BYTES 160
/* Room for the names of the files that a definition is about. */
#define INSIDE_FILES_BYTES 512

/* A function whose calls are only counted. allocprof writes all but @is_found. */
struct inside_counted {
	__u32 function; /* AP_DEFINED and so on */
	__u32 is_found; /* 1: an object that a process has loaded exports it */
	char name[INSIDE_NAME_BYTES];
	/* The variable by whose value the function goes on, and one whose byte has to be 1 for that; "": none. */
	char word[INSIDE_NAME_BYTES], flag[INSIDE_NAME_BYTES];
};

/* How many definitions may have a domain. */
#define INSIDE_DOMAINS 8

/* A definition whose functions go on by a table that an object has (struct PyMemAllocatorEx of CPython), of which the
 * object exports a function that copies it. allocprof writes all but @is_found. */
struct inside_domain {
	__u32 definition; /* its functions have the numbers of enum ap_defined_kind */
	__u32 number;	  /* first argument of the function, by which it knows the table */
	__u32 is_found;	  /* 1: a process has such a table */
	__u32 pad;	  /* 0 */
	char getter[INSIDE_NAME_BYTES];
};

/* The functions and the domains that the library counts for definitions. */
struct inside_all_counted {
	__u32 n, n_domains;
	struct inside_counted list[INSIDE_COUNTED];
	struct inside_domain domains[INSIDE_DOMAINS];
	/* By definition: names of files with the shell's '*' and '?', each terminated, and an empty one behind the
	 * last. Without any the functions of all files count. */
	char files[AP_MAX_DEFINITIONS][INSIDE_FILES_BYTES];
};

/* Table n of a program's live blocks has 1 << (INSIDE_FIRST_BLOCKS + n) slots. */
#define INSIDE_BLOCK_TABLES 16
#define INSIDE_FIRST_BLOCKS 13

/* How a program came to be. */
enum inside_birth {
	INSIDE_BORN_EXEC,     /* the dynamic linker loaded the library */
	INSIDE_BORN_FORK,     /* the process was forked from a measured one */
	INSIDE_BORN_ATTACHED, /* the library was mapped into a process that ran already */
};

/* How a program ended, as far as its process could report that. */
enum inside_end {
	INSIDE_RUNS,   /* it runs, or was killed */
	INSIDE_EXITED, /* it has exited, or is about to */
	INSIDE_EXECED, /* it has executed another program, or is about to */
};

enum inside_state {
	INSIDE_EMPTY, /* taken and not written yet, or its writer was killed */
	INSIDE_READY, /* complete; this state is stored last */
};

/* Room for the arguments of a program, more than are kept in recordings. */
#define INSIDE_ARGUMENT_BYTES 264

/* A program in a process: an exec makes a new one. */
struct inside_program {
	__u32 state;	   /* enum inside_state */
	__u32 birth;	   /* enum inside_birth */
	__u32 pid;	   /* in the process's own PID namespace */
	__u32 parent;	   /* the parent's pid */
	__u32 forked_from; /* INSIDE_BORN_FORK: number of the parent's program, from 1; else 0 */
	__u32 ended;	   /* enum inside_end */
	__u64 begin_ns;	   /* CLOCK_MONOTONIC */
	/* Inode of the PID namespace in which @pid is valid; 0 if it is not known. */
	__u64 pid_namespace;
	char comm[AP_COMM_LEN];
	__u64 blocks[INSIDE_BLOCK_TABLES]; /* LIVE: offsets of tables of struct inside_block */
	__u64 end_generation;		   /* LIVE: generation of the peak when it ended */
	__u64 end_ns;			   /* when it ended, CLOCK_MONOTONIC */
	/* Addresses in the process: where the library is, and its struct inside_mappings. */
	__u64 library, library_end;
	__u64 mappings;
	__u64 events; /* offset of a struct inside_events; 0: the program has had no event */
	/* The beginning of /proc/self/cmdline, and its length; 0: it is not known, as of INSIDE_BORN_FORK without is_own. */
	__u32 argument_bytes, pad;
	char arguments[INSIDE_ARGUMENT_BYTES];
};

/* Event of a call, or of the end of a block. */
struct inside_event {
	/* Events of a program are numbered from 1 in the order in which they happened; stored last.
	 * A number below @first of the chunk: the event is not complete. */
	__u64 number;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 address; /* as in struct ap_event_record */
	__u64 size_bytes;
	/* AP_EVENT_MOVED: the block as it was before the call. */
	__u64 old_address, old_size_bytes;
	__u64 birth_ns; /* of the block that ended: with its address, this tells it from all others */
	__u32 record, old_record;
	__u32 thread; /* tid */
	__u8 kind;    /* enum ap_event_kind; AP_EVENT_MOVED is of both blocks */
	__u8 temporary;
	__u16 pad;		  /* 0 */
	__u32 weight, old_weight; /* 1 without sampling */
};

enum inside_chunk_state {
	INSIDE_CHUNK_FREE,  /* a thread may take the chunk */
	INSIDE_CHUNK_TAKEN, /* a thread is about to set @first */
	INSIDE_CHUNK_USED,  /* a thread adds events, one after the other */
	INSIDE_CHUNK_FULL,  /* no more events come; allocprof sets it free when it has read them */
};

#define INSIDE_CHUNK_EVENTS 51

/* Events of one thread. */
struct inside_event_chunk {
	__u64 first; /* no event of the chunk has a lower number */
	__u64 pad;   /* 0 */
	struct inside_event events[INSIDE_CHUNK_EVENTS];
};

/* Part n of a program's chunks has INSIDE_FIRST_EVENT_CHUNKS << n of them: first their states, of 4
 * bytes each, and from the next page on the chunks. */
#define INSIDE_EVENT_PARTS	  12
#define INSIDE_FIRST_EVENT_CHUNKS 4
#define INSIDE_EVENT_CHUNKS                                                                        \
	((INSIDE_FIRST_EVENT_CHUNKS << INSIDE_EVENT_PARTS) - INSIDE_FIRST_EVENT_CHUNKS)

static inline __u32 inside_event_part__chunks(__u32 part)
{
	return INSIDE_FIRST_EVENT_CHUNKS << part;
}

/* Returns where the first chunk of a part is in it. */
static inline __u64 inside_event_part__chunks_at(__u32 part)
{
	return (inside_event_part__chunks(part) * sizeof(__u32) + INSIDE_PAGE - 1) &
	       ~(__u64)(INSIDE_PAGE - 1);
}

/* Events of a program. */
struct inside_events {
	__u64 n __attribute__((aligned(64))); /* how many numbers were taken */
	__u64 n_lost;			      /* events that found no room, and have no number */
	__u32 n_taken;			      /* how often a chunk was taken */
	__u32 pad;			      /* 0 */
	__u64 parts[INSIDE_EVENT_PARTS];      /* offsets */
	/* How often allocprof has set a chunk free. Threads that find no room wait until it changes. */
	__u32 n_freed __attribute__((aligned(64)));
};

/* With events: what a record counts; its index is the record's number minus 1. */
struct inside_record_key {
	__u32 state; /* enum inside_state */
	__u32 program;
	__u64 stack; /* hash */
	/* Offset of a struct ap_stack_record and its frames; 0 without stacks. */
	__u64 frames;
	__u32 function; /* enum ap_function */
	__u32 pad;	/* 0 */
	char comm[AP_COMM_LEN];
};

/* How many mappings can be noted: more than ten thousand threads with LIVE have. */
#define INSIDE_MAX_MAPPINGS 32768

/* Value of @start while a thread writes the slot. */
#define INSIDE_MAPPING_WRITTEN 1

/* What the library has mapped in a process. It is in the process's own memory, not in the shared. */
struct inside_mappings {
	struct {
		__u64 start, end; /* addresses; @start is stored last; 0: the slot is free */
	} list[INSIDE_MAX_MAPPINGS];
	__u32 n;    /* slots that were used so far */
	__u32 free; /* the first one that may be free */
};

/* Counters of one thread. When it has ended, a thread of the same process that begins later may
 * take them over. */
struct inside_thread {
	__u32 state;   /* enum inside_state */
	__u32 tid;     /* tid of the last thread that had it */
	__u32 program; /* number of the program, from 1 */
	__u32 pad;     /* 0 */
	char comm[AP_COMM_LEN];
	__u64 stats[AP_STATS]; /* indexed by enum ap_stat */
	/* Indexed by enum ap_function. @internal counts calls that the allocator made by a
	 * function's name, which are fewer than a probe would see. */
	struct ap_site_counts functions[AP_DEFINED];
	/* Calls of functions that are only counted, by definition. */
	__u64 counted[AP_MAX_DEFINITIONS];
	/* Offset of a table of struct inside_count, with log2 of its room in the bits
	 * INSIDE_SHIFT; 0: there is none yet. */
	__u64 counts;
	/* LIVE: offsets, like that of @counts, of tables of struct inside_record and of struct
	 * inside_lifetime. */
	__u64 records, lifetimes;
	/* Offset of a struct inside_thread_regions; 0: the thread has begun no region. */
	__u64 regions;
	/* Offset of a struct inside_thread_defined; 0: no definition has a domain. */
	__u64 defined;
};

/* Counters of a thread for the functions of defined allocators. */
struct inside_thread_defined {
	struct ap_site_counts functions[AP_FUNCTIONS - AP_DEFINED]; /* from AP_DEFINED on */
};

/* Counters of one thread by region. */
struct inside_thread_regions {
	__u64 begins[AP_MAX_REGIONS]; /* indexed by the number of the region */
	__u64 sets
		/* Indexed by the number of the set: offsets of struct inside_region_counts. */
		[AP_MAX_REGION_SETS];
};

/* Counters of a thread for the time during which a set of regions is open. */
struct inside_region_counts {
	struct ap_site_counts functions[AP_FUNCTIONS];
	__u64 counted[AP_MAX_DEFINITIONS]; /* as in struct inside_thread */
	__u64 stats[AP_STATS];		   /* LIVE: counted as the programs of bpf/ do by set */
};

/* Stored in place of the offset of a struct inside_thread whose process has ended, when allocprof
 * has added its counters to its own sums. */
#define INSIDE_RETIRED 1

#define INSIDE_SHIFT	 63
#define INSIDE_MAX_SHIFT 28

/* Calls of one function with one stack, by one thread. The entry is free if @stack is 0. */
struct inside_count {
	__u64 stack; /* hash, as in struct ap_count_key; stored last */
	__u32 function;
	__u32 pad; /* 0 */
	__u64 calls;
	__u64 size_bytes;
};

/* With sampling tables of struct inside_count have these entries instead. */
struct inside_sampled_count {
	struct inside_count count;
	struct ap_estimate estimate;
};

/* LIVE: what one thread has done with the blocks of a stack and function. */
struct inside_record {
	/* hash; 0: @record belongs to another thread, whose blocks this one has freed. */
	__u64 stack;
	__u32 function; /* enum ap_function */
	__u32 record;	/* number of the record, from 1; stored last */
	/* The first AP_BLOCKS_BYTES of a struct ap_blocks. All numbers, also those of the peak,
	 * are this thread's share, which may be negative. */
	__u64 blocks[AP_BLOCKS_BYTES / 8];
};

/* With sampling tables of struct inside_record have these entries instead. */
struct inside_sampled_record {
	struct inside_record record;
	struct ap_estimate of_calls, of_allocations, of_frees, of_temporary;
};

struct inside_lifetime {
	struct ap_lifetime_key key;
	struct ap_lifetime lifetime; /* the entry is free if this has no blocks */
};

#define INSIDE_BLOCK_NEVER   0 /* the slot was never used */
#define INSIDE_BLOCK_FREED   1
#define INSIDE_BLOCK_WRITTEN 2 /* a thread is writing the slot, or was killed while it did */

#define INSIDE_BLOCK_UP	       (1ULL << 63)
#define INSIDE_BLOCK_SIZE_BITS 47

struct inside_block {
	__u64 key; /* address << 16 | low 16 bits of the record's number; stored last */
	/* Size in bytes << 16 | further bits of the record's number; with sampling also
	 * INSIDE_BLOCK_UP, if the weight was rounded up. */
	__u64 size;
	__u64 birth_ns;
	__u32 thread, sequence; /* as in struct ap_block */
};

/* LIVE: state that all processes share. */
struct inside_live {
	__u32 n_records; /* how many record numbers were taken */
	__u32 n_threads;
	__u32 epoch_shift;
	__u32 pad; /* 0 */
	/* The same sums as in struct ap_live. */
	__s64 size_bytes __attribute__((aligned(64)));
	__s64 blocks;
	__s64 entries; /* number of blocks in the tables; counted only if it is limited */
	__u64 max_bytes;
	__u64 mark_bytes __attribute__((aligned(64)));
	__u64 generation;
};

#define INSIDE_BUILD_ID_BYTES 20

/* A file that a process has mapped executable. Its id is INSIDE_FIRST_MODULE plus its index. One
 * file may have several ids, since processes that meet it at the same time do not wait for each
 * other. */
struct inside_module {
	__u32 state;  /* enum inside_state */
	__u32 pid;    /* pid, in its own PID namespace, of the process that met the file */
	__u32 device; /* as in struct ap_module_record, with the number that /proc/PID/maps shows */
	__u32 pad;    /* 0 */
	__u64 inode;
	__u64 start, end;	      /* addresses of the mapping in that process */
	__u64 offset;		      /* file offset of @start */
	__u64 time_ns;		      /* CLOCK_MONOTONIC */
	char path[INSIDE_PATH_BYTES]; /* path of the mapping, truncated if it is longer */
	/* With is_own: the build id that the file's notes have in memory, if it is not longer than
	 * this; the rest is 0. */
	__u32 build_id_bytes;
	__u8 build_id[INSIDE_BUILD_ID_BYTES];
};

#define INSIDE_FIRST_MODULE (AP_MODULE_VDSO + 1)

/* The environment of a process that keeps its counts in a file of its own. */
#define INSIDE_OUTPUT_VARIABLE	 "ALLOCPROF_OUTPUT"
#define INSIDE_SETTINGS_VARIABLE "ALLOCPROF_SETTINGS"
/* Most bytes of either value, without the terminating 0. */
#define INSIDE_VALUE_BYTES 255

/* Room for the arguments of the process; the rest is left out. */
#define INSIDE_COMMAND_BYTES 3584

/* Facts about a process with a file of its own, which nobody can ask when the file is read. */
struct inside_origin {
	__u64 realtime_ns; /* CLOCK_REALTIME when CLOCK_MONOTONIC was monotonic_ns */
	__u64 monotonic_ns;
	__u64 sample_bytes; /* one byte in so many is sampled; 0: every call counts */
	__u32 command_bytes;
	__u32 machine;	  /* of the processor, EM_*; 0: not stored */
	char boot_id[40]; /* of the running kernel, /proc/sys/kernel/random/boot_id */
	char kernel[72];  /* its release */
	char command[INSIDE_COMMAND_BYTES]; /* the arguments, each with a terminating 0 */
};

/* Table n of the set of stacks has 1 << (INSIDE_FIRST_STACKS + n) slots, of which half are used. */
#define INSIDE_STACK_TABLES 12
#define INSIDE_FIRST_STACKS 14

/* A published stack, or a frame of Python in one. Both words are stored by one instruction. */
struct inside_stack {
	__u64 hash; /* 0: free; of a frame of Python its id */
	/* Offset of a struct ap_stack_record and its frames, or of a struct ap_python_record and its texts. */
	__u64 offset;
};

/* Offsets in the file of unwind tables. */
#define INSIDE_TABLES_AT 0
#define INSIDE_SLICES_AT (1 << 19)
#define INSIDE_RULES_AT	 (1 << 20)
#define INSIDE_CHUNKS_AT (8 << 20)
/* Indexed by module: struct ap_within, which is written before the module's table. */
#define INSIDE_WITHIN_AT    (INSIDE_CHUNKS_AT + (__u64)UNWIND_MAX_CHUNKS * sizeof(struct unwind_chunk))
#define INSIDE_WITHIN_BYTES ((__u64)UNWIND_MAX_MODULES * sizeof(struct ap_within))
#define INSIDE_TABLES_BYTES (INSIDE_WITHIN_AT + INSIDE_WITHIN_BYTES)

/* Gaps in the counts: processes that could not be measured, and events that were not
 * counted. */
enum inside_gap {
	INSIDE_GAP_PROGRAMS, /* processes for which there was no room: their calls are lost */
	INSIDE_GAP_THREADS,  /* threads for which there was no memory: their calls are lost */
	INSIDE_GAP_EARLY,   /* calls made before the process or thread had its memory in the file */
	INSIDE_GAP_EXECS,   /* execs of programs that the library cannot be preloaded into */
	INSIDE_GAP_MODULES, /* files for which there was no room, so that no table will come */
	/* Threads that are counted under another name, since there are too many names. */
	INSIDE_GAP_NAMES,
	/* Calls of an allocator's own functions about which too little is known, and words in
	 * which such a function's address could not be replaced. */
	INSIDE_GAP_FUNCTIONS,
	/* Libraries that were loaded such that they do not find this one's functions: dlmopen(3),
	 * RTLD_DEEPBIND. */
	INSIDE_GAP_LOADS,
	/* LIVE: processes with a garbage collector, which frees blocks without a call. */
	INSIDE_GAP_COLLECTED,
	/* Processes that mapped other memory over the library's, and are not counted any more. */
	INSIDE_GAP_REPLACED,
	/* Functions that are only counted, and may be called, or have been, by no word that was changed in time. */
	INSIDE_GAP_COUNTED,
	INSIDE_GAP_EVENTS, /* events of programs that had no memory to count them as lost */
	INSIDE_GAPS,
};

/* Why the library cannot be preloaded into a program. */
enum inside_refusal {
	INSIDE_REFUSES_STATIC,	/* it has no dynamic linker */
	INSIDE_REFUSES_MACHINE, /* it is for another processor or word size */
	/* The program runs with other privileges: set-user-ID, set-group-ID, capabilities. */
	INSIDE_REFUSES_SECURE,
	INSIDE_REFUSES_HIDDEN, /* the measurement's directory cannot be reached from the process */
	INSIDE_REFUSES_UNREADABLE, /* its file cannot be read */
	/* The program defines malloc itself: it runs, but its calls do not come to the library. */
	INSIDE_REFUSES_ALLOCATOR,
	INSIDE_REFUSES_SANITIZER,  /* it has a sanitizer's allocator, which must come first */
	INSIDE_REFUSES_TRANSLATOR, /* it runs other programs by translating their code */
	/* The program runs with a seccomp filter that forbids the library's system calls. */
	INSIDE_REFUSES_CONFINED,
	INSIDE_REFUSALS,
};

/* allocprof's answer to a process that executes such a program. */
enum inside_answer {
	INSIDE_NO_ANSWER,
	INSIDE_NOT_BY_OTHER,
	INSIDE_BY_OTHER, /* another engine counts its calls from its exec on */
};

struct inside_refused {
	__u32 state;  /* enum inside_state */
	__u32 reason; /* enum inside_refusal */
	/* Program that executes it; 0: a child of vfork(2), or a process whose calls another
	 * engine counts. */
	__u32 program;
	__u32 pid;
	/* Inode of the PID namespace in which @pid is valid; 0 if it is not known. */
	__u64 pid_namespace;
	__u32 answer;		      /* enum inside_answer */
	__u32 pad;		      /* 0 */
	char path[INSIDE_PATH_BYTES]; /* truncated if it is longer */
};

/* How often and how long threads have waited for allocprof to compile an unwind table or to
 * answer. */
struct inside_waits {
	/* When a thread first waited since allocprof last did something, CLOCK_MONOTONIC.
	 * allocprof sets it to 0 when it does something. */
	__u64 since_ns;
	__u64 count, total_ns;
};

/* The name under which threads are counted when there are more names than a process has counters
 * for. */
#define INSIDE_OTHER_NAMES "(other names)"

/* A region, whose number is its index. */
struct inside_region {
	/* Hash of the name, by which all processes know the region; not 0. 0: free. Stored first. */
	__u64 key;
	/* Enum inside_state; every process that does not find it ready writes the name, which is
	 * the same for all. */
	__u32 state;
	__u32 pad; /* 0 */
	char name[AP_REGION_NAME_BYTES + 8];
};

/* Regions of all processes. */
struct inside_regions {
	__u64 unnumbered; /* number of begins of regions for which there was no number left */
	__u64 unnamed;	  /* number of begins of regions with an invalid name */
	/* Masks as in struct ap_regions. */
	__u64 masks[AP_MAX_REGION_SETS];
	struct inside_region list[AP_MAX_REGIONS];
};

enum inside_gate {
	INSIDE_CLOSED, /* calls are not counted, but frees end followed blocks */
	INSIDE_OPEN,
	INSIDE_STOPPED, /* nothing is counted any more */
};

/* The tasks for which allocprof has a thread of a running process call the library (struct
 * inside_request). */
enum inside_action {
	INSIDE_ATTACH, /* begin to measure: afterwards all objects call the library's functions */
	INSIDE_DETACH, /* end: the objects call the functions that they called before */
	/* Unmap all memory that the library has mapped; no thread may be within it. */
	INSIDE_CLEAN,
};

enum inside_stage {
	INSIDE_STAGE_CALLED,
	/* The function is about to take the dynamic linker's lock, which a stopped thread may
	 * hold. It has changed nothing yet. */
	INSIDE_STAGE_LOCKS,
	INSIDE_STAGE_WORKS,
	INSIDE_STAGE_DONE, /* it waits for a moment to be taken back by allocprof */
	/* The thread gave up waiting for allocprof, and returns to its own code. */
	INSIDE_STAGE_RETURNS,
};

/* Number of the library's thread-local variables. In a running process they are thread-specific
 * data of the C library (pthread_key_create(3)), since the static TLS of existing threads has no
 * room for them. */
#define INSIDE_THREAD_WORDS 2

/* The library has so many stubs, which limits how many functions of allocators it can follow beside
 * the C library's, and each takes so many bytes. */
#define INSIDE_STUBS	  512
#define INSIDE_STUB_BYTES 32

/* A function of an allocator that the program contains. Stub number n leads to function number n. */
struct inside_function {
	__u64 address;
	__u64 size_bytes; /* of its code; 0: unknown */
	__u32 row;	  /* its number in interface_functions */
	__u32 pad;
};

/*
 * The request, which allocprof writes while it holds all threads, before one of them calls
 * allocprof_attach(); the function writes its results into it. It is the variable
 * allocprof_request of the library, whose symbol table has both addresses.
 */
struct inside_request {
	__u32 action;	/* enum inside_action */
	__u32 stage;	/* enum inside_stage */
	__s32 result;	/* 0 or a negative errno; -EAGAIN: the dynamic linker is at work */
	__u32 has_keys; /* 1: @keys and @offsets are valid */
	/* Addresses at which struct inside_header and the first page of the tables are mapped; 0:
	 * there are no tables. */
	__u64 memory, tables;
	__u64 linker; /* address of the dynamic linker's struct r_debug */
	/* ATTACH: the process's seccomp filters: @n_filters struct sock_fprog and their
	 * instructions, in memory of the process that the library unmaps. */
	__u64 filters, filters_bytes, n_filters;
	/* ATTACH: @n_functions struct inside_function, at most INSIDE_STUBS, in memory of the process
	 * that the library unmaps. allocprof has the program's own calls lead to their stubs. The library
	 * sets the address to 0, as that of the filters, when it has unmapped the memory. */
	__u64 functions, functions_bytes, n_functions;
	/* The keys (pthread_key_t), and the offsets of their values from the address in FS. The
	 * first ATTACH finds both. */
	__u32 keys[INSIDE_THREAD_WORDS];
	__u64 offsets[INSIDE_THREAD_WORDS];
	/* Offset of the thread's number, which the C library keeps, from the address in FS. */
	__u64 tid_offset;
	/* ATTACH: number of words that were changed; DETACH: number of words that were restored. */
	__u64 n_words;
	/* DETACH: number of words that somebody else has changed meanwhile, and of words that led
	 * past the library. */
	__u64 n_lost;
};

/* Most functions whose calls are redirected: the C library's, and those that a stub is made for. */
#define INSIDE_REDIRECTIONS 528

/*
 * The functions of allocators whose calls come to the library: the words that had their addresses
 * were changed. It is the variable allocprof_redirections of the library, which is complete when
 * ATTACH has succeeded.
 */
struct inside_redirections {
	__u64 n;
	struct inside_redirection {
		/* Address of an instruction of the library that each call executes first, and
		 * that the kernel emulates where it has a probe. */
		__u64 stub;
		/* Address of the function that such a call goes on to. It may have another name
		 * than the one that was called: reallocarray goes on to realloc. */
		__u64 function;
	} list[INSIDE_REDIRECTIONS];
};

struct inside_header {
	__u64 magic;
	__u32 version;
	__u32 header_bytes;
	__u64 size_bytes; /* size of the file */
	struct inside_settings settings;
	/* The fields down to @is_tight: allocprof may write them at any time. */
	/* enum inside_gate. A process that finds that allocprof was killed sets INSIDE_STOPPED,
	 * too. */
	__u32 gate __attribute__((aligned(64)));
	/* 1: a process that executes a program that the library cannot be preloaded into waits for
	 * the answer first. */
	__u32 hands_over;
	/* 1: the file system has little room left, so a process has the kernel allocate all pages
	 * of memory before it uses them: without room a store would kill it by SIGBUS. */
	__u32 is_tight;
	/* The fields from here on are written by the processes. */
	__u64 next __attribute__((aligned(64))); /* offset of the first byte that is not taken */
	__u64 gaps[INSIDE_GAPS];
	struct inside_array programs;	   /* struct inside_program */
	struct inside_array threads;	   /* __u64, the offset of a struct inside_thread */
	struct inside_array refused;	   /* struct inside_refused */
	struct inside_array modules;	   /* struct inside_module */
	__u64 stacks[INSIDE_STACK_TABLES]; /* offsets of tables of struct inside_stack */
	__u32 n_stacks[INSIDE_STACK_TABLES];
	struct inside_array histograms;	 /* struct ap_histograms */
	struct inside_array record_keys; /* struct inside_record_key */
	struct inside_live live __attribute__((aligned(64)));
	struct inside_waits waits __attribute__((aligned(64)));
	struct inside_regions regions;
	struct inside_all_counted counted;
	/* Number of programs that processes executed with the library in LD_PRELOAD, and number of
	 * programs in which it began, both including the command. A program between execve(2) and
	 * the start of its dynamic linker counts only in the first. */
	__u64 n_injected, n_begun;
	__u64 origin; /* is_own: offset of a struct inside_origin */
};

/* How much of the shared memory is mapped at first; whoever maps it and whoever unmaps it may be others. */
#define INSIDE_HEADER_BYTES                                                                        \
	((sizeof(struct inside_header) + INSIDE_PAGE - 1) & ~(__u64)(INSIDE_PAGE - 1))

_Static_assert(sizeof(struct inside_program) == 504, "inside_program is ABI");
_Static_assert(sizeof(struct inside_block) == 32, "inside_block is ABI");
_Static_assert(sizeof(struct inside_event) == 80, "inside_event is ABI");
_Static_assert(INSIDE_PAGE % sizeof(struct inside_event_chunk) == 0, "chunks fill pages");
_Static_assert(sizeof(struct inside_record_key) == 48, "inside_record_key is ABI");
_Static_assert(sizeof(struct inside_record) == 216, "inside_record is ABI");
_Static_assert(sizeof(struct inside_sampled_record) ==
		       sizeof(struct inside_record) + sizeof(struct ap_blocks) - AP_BLOCKS_BYTES,
	       "the estimates follow the blocks as they do in struct ap_blocks");
_Static_assert(sizeof(struct inside_module) == 304, "inside_module is ABI");
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
