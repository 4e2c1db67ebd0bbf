/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile: the results of a recording in memory, with the contents of a data file
 * (allocprof-data(5)). Engines fill it, data_file.h writes and reads it, and reports read it. */
#ifndef ALLOCPROF_PROFILE_H
#define ALLOCPROF_PROFILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "gaps.h"
#include "hash_table.h"
#include "profile_totals.h"
#include "definition_names.h"

struct demangler;
struct error;

/* Sums saturate at SQL's largest integer: failed calls may request nearly 2^64 bytes each, and sums
 * must not wrap. */
#define PROFILE_MAX ((__u64)INT64_MAX)

/* A file (or the vDSO) whose code was mapped. Ids count from 1; 0 is "no module". */
struct profile_module {
	__u32 id;
	char *path;	/* path as it was mapped; owned by the profile */
	char *build_id; /* lower-case hex, "" if unknown; owned */
	char *symbols;	/* source of its names, or why there are none; "" before symbolization;
		        * owned */
	/* Tells files of one path without build ids apart: a number during a recording, else
	 * arbitrary. */
	__u64 file;
};

/* One program that a process runs: an exec starts a new one under the same pid. Ids count from 1. */
struct profile_process {
	__u32 id;
	__u32 parent;	/* id of the program that forked or exec'ed this one; 0 for the first */
	__u32 pid;	/* in allocprof's PID namespace */
	__u64 start_ns; /* time of its fork or exec, CLOCK_MONOTONIC */
	__u64 end_ns;	/* CLOCK_MONOTONIC; 0 if it outlived the recording */
	bool execed;	/* ended by an exec: its memory was discarded, not leaked */
	__u32 run;	/* number of its run, from 1, in a recording of several runs */
	char *comm;	/* owned */
	/* Path of the control group that it began in, and what reports call that: a container, a unit
	 * or the last part of the path. Owned; NULL: unknown. */
	char *group, *group_name;
	/* The beginning of its command line as a shell would take it. Owned; NULL: unknown. */
	char *arguments;
	char *label; /* what reports call it, if that is not comm; owned, and in no data file */
};

/* All threads of a program that had the same name when they called. Ids count from 1. */
struct profile_thread {
	__u32 id;
	__u32 process;
	char *name;	/* owned */
	bool is_closed; /* by profile__close_counts() */
};

/* A function's names. Symbols are unique. Ids count from 1. */
struct profile_function {
	__u32 id;
	/* Linker name; owned, as the others are; all three are equal if it is not mangled. */
	char *symbol;
	char *name;	 /* demangled without parameters and default template arguments */
	char *full_name; /* demangled in full */
};

/* A source file. Ids count from 1. */
struct profile_file {
	__u32 id;
	char *path; /* from the debug information; owned */
};

/* Function and source line of a frame. */
struct profile_line {
	__u32 function;
	__u32 file; /* 0: unknown */
	__u32 line; /* 0: unknown */
	bool inlined;
};

/* The address of a frame is one of these. */
enum profile_place {
	PROFILE_PLACE_CALL,	   /* a return address, so look up the byte before it */
	PROFILE_PLACE_INTERRUPTED, /* the instruction at which a signal came */
	/* It is no frame of the stack: where an async function goes on when what it awaits is done, which is the next inner frame. */
	PROFILE_PLACE_AWAITING,
	PROFILE_PLACES,
};

/* A distinct code address. Ids count from 1. */
struct profile_frame {
	__u32 id;
	__u32 module;	/* module id; 0 if no mapping is known: then @offset is an address */
	__u64 offset;	/* ELF virtual address in the module */
	__u32 place;	/* enum profile_place; the column is named interrupted */
	bool tail_call; /* the function ended by a tail call, a jump that ends at @offset, to the
			 * next inner frame; it had no frame on the stack and was inserted
			 * afterwards */
	struct profile_line *lines; /* innermost first; only the last is not inlined; owned */
	__u32 n_lines;		    /* 0 if not symbolized or unknown */
};

/* A distinct list of frames and how it ended. Ids count from 1. */
struct profile_stack {
	__u32 id;
	enum ap_stack_end end;
	__u32 n_frames;
	__u32 *frames; /* frame ids, innermost (the allocator's caller) first */
};

/*
 * Calls of one function from one stack by one thread name in one program. Ids count from 1.
 */
struct profile_count {
	__u32 id;
	__u32 process; /* program of the thread */
	__u32 thread;
	__u32 stack;
	enum ap_function function;
	__u32 blocks; /* offset of its packed blocks + 1; 0: none */
	__u64 calls;
	__u64 size_bytes; /* sum of requested bytes, which saturates at PROFILE_MAX */
};

/* Buckets of a histogram: bucket n holds values of n significant bits, so 2^(n-1) to 2^n - 1, and
 * bucket 0 holds 0. */
#define PROFILE_BUCKETS 65

/* What the program can still reach of its live blocks (enum reach_class). */
enum profile_reach {
	PROFILE_LOST,
	PROFILE_INDIRECTLY_LOST,
	PROFILE_POSSIBLY_LOST,
	PROFILE_REACHABLE,
	PROFILE_REACHES,
};

struct profile_reached {
	__u64 blocks, size_bytes;
};

/*
 * The fate of the blocks that a count's calls returned; only with --live. A realloc ends one
 * block and begins another, which belongs to its own stack. live = allocations - frees -
 * discarded.
 */
struct profile_blocks {
	__u32 count;
	__u64 failed; /* calls that returned no memory */
	__u64 allocations, size_bytes;
	__u64 frees, freed_bytes;	  /* of these blocks, wherever they were freed */
	__u64 discarded, discarded_bytes; /* ended with their address space by an exec */
	__u64 temporary, temporary_bytes; /* freed before the same thread's next allocation */
	/* Blocks for which a realloc of the same thread and stack returned a larger one; part of frees. */
	__u64 grown, grown_bytes;
	__u64 freed_by_others; /* frees by other threads than the one that has allocated the block */
	__u64 peak, peak_bytes; /* live at the high-water mark of all processes together */
	__u64 oldest_ns;	/* birth of the oldest live block, since the recording's start */
	/*
	 * Resident memory at the end, only with --resident: resident bytes of live blocks, pages
	 * of 4 KiB that have any of them, and of these the pages without a block of another stack,
	 * with the bytes of these that are of no block. A page on which several counts of one
	 * stack have blocks belongs to one of them.
	 */
	__u64 resident_bytes, pages, unique_pages, unique_slack_bytes;
	/* What the allocator has of live blocks beside the requested bytes, headers and rounding, by
	 * its rule (enum size_rule); only with --resident. */
	__u64 rounding_bytes;
	/* Live blocks by whether pointers lead to them, only with --reachable. */
	struct profile_reached reached[PROFILE_REACHES];
	__u64 sizes[PROFILE_BUCKETS]; /* numbers of blocks by requested bytes */
	/* Numbers of freed blocks by nanoseconds from the allocator's return to the free. */
	__u64 lifetimes[PROFILE_BUCKETS];
};

/* Precision of an estimated number, if bytes were sampled. */
struct profile_estimate {
	__u64 samples;	       /* sampled calls or blocks */
	double variance;       /* estimated variance of the number */
	double bytes_variance; /* estimated variance of its bytes */
};

/* The numbers of a count that have an estimate. */
enum profile_sampled {
	PROFILE_SAMPLED_CALLS,
	/* The numbers below only with --live. */
	PROFILE_SAMPLED_ALLOCATIONS,
	PROFILE_SAMPLED_LIVE,
	PROFILE_SAMPLED_TEMPORARY,
	PROFILE_SAMPLED,
};

struct profile_samples {
	__u32 count;
	struct profile_estimate of[PROFILE_SAMPLED];
};

/* The epoch of death of a block that is not freed. */
#define PROFILE_LIVE UINT32_MAX

/*
 * Blocks of one count by the epochs of birth and death. Epochs are meta "epoch_ns" long each, and
 * the first is 0. Blocks that are not freed went with their address space in the epoch @exited if
 * its last process ended before the process with which the recording ends.
 */
struct profile_lifetime {
	__u32 count;
	__u32 born;
	__u32 died;   /* PROFILE_LIVE: not freed */
	__u32 exited; /* PROFILE_LIVE if the blocks were freed, or lasted until the end */
	__u64 blocks, size_bytes;
};

/* A sample of the time line. */
struct timeline_sample {
	__u64 time_ns; /* since the start of the recording, or of its run */
	__u64 live, live_bytes;
	__u64 allocations, size_bytes; /* totals since the start */
	__u64 rss_bytes;	       /* anonymous resident memory of all followed processes */
	__u32 run;		       /* number of the run, as in profile_process; 0 becomes 1 */
};

/* Pages are of this size, whatever a machine's are. */
#define PROFILE_PAGE_BYTES 4096

/* The resident memory of a process is the sum of these parts. */
enum rss_kind {
	RSS_BLOCKS,    /* live blocks */
	RSS_SLACK,     /* the rest of pages with live blocks: headers, rounding, freed blocks */
	RSS_FREE,      /* pages of an allocator without a live block */
	RSS_BEFORE,    /* pages of an allocator that were resident before the recording began,
		       * without what live blocks have of them */
	RSS_MAPPINGS,  /* other private anonymous mappings */
	RSS_INHERITED, /* private memory of a forked process without a live block of its own: its
			* parent's blocks may be there */
	RSS_STACKS,    /* stacks of threads */
	RSS_DATA,      /* programs' data: written pages of files, and .bss */
	RSS_FILES,     /* private pages of files */
	RSS_SHARED,    /* shared mappings, and pages that a fork(2) shares */
	RSS_OWN,       /* what allocprof has mapped there */
	RSS_CHANGED,   /* pages that were counted, and gone when they were looked at */
	RSS_KINDS,
	/* These are no parts of the sum: transparent huge pages among all of that, and the most that
	 * the process ever had. */
	RSS_HUGE = RSS_KINDS,
	RSS_HIGHEST,
	RSS_ROWS,
};

/* A part of a process's resident memory at the end, or when it exited; only with --resident. */
struct profile_rss {
	__u32 process;
	enum rss_kind kind;
	__u64 size_bytes;
};

/* The parts of the resident memory of all processes together, at a moment at which a copy of the
 * recording was made, or at its end; only with --resident, and of one run. */
struct profile_rss_sample {
	__u64 time_ns; /* since the start of the recording */
	__u64 torn_ms; /* for so long the processes may have changed it while it was read */
	__u64 bytes[RSS_KINDS];
};

/* An event in the course of a recording of one run. */
enum mark_kind {
	MARK_DUMP,  /* a copy was written: its limit of --dump-at, or nothing */
	MARK_STOP,  /* `allocprof ctl stop`: from here on nothing counts */
	MARK_START, /* `allocprof ctl start` */
	MARK_KINDS,
};

/* A recording has at most so many marks. */
#define PROFILE_MAX_MARKS 1000

struct profile_mark {
	__u64 time_ns; /* since the start of the recording */
	enum mark_kind kind;
	char *name; /* owned; "": none */
};

/* Heaps are told apart by what their addresses say. */
enum heap_kind {
	HEAP_MAIN,   /* of glibc, in the memory of brk(2) */
	HEAP_BREAK,  /* in that memory, of another allocator */
	HEAP_ARENA,  /* of an arena of glibc for threads, by its address */
	HEAP_MAPPED, /* mappings that glibc makes for one block each */
	HEAP_OTHER,  /* other mappings with live blocks: another allocator's */
	HEAP_KINDS,
};

/* A heap of a process, and its part of the resident memory; only with --resident. */
struct profile_heap {
	__u32 process;
	enum heap_kind kind;
	__u64 address;	/* of HEAP_ARENA: of its struct malloc_state; else 0 */
	__u64 mappings; /* number of mappings */
	/* Resident bytes: in all, of live blocks, of no block on the pages of these, and on pages
	 * without any; what was there before the recording is in the first alone. */
	__u64 resident_bytes, block_bytes, slack_bytes, free_bytes;
	__u64 blocks, size_bytes; /* live blocks, and their bytes, resident or not */
};

/* How an allocator rounds sizes. */
enum size_rule {
	SIZE_RULE_UNKNOWN,
	SIZE_RULE_GLIBC,
	SIZE_RULE_JEMALLOC,
	SIZE_RULES,
};

/* Live blocks of all processes by what of memory the allocator's rule gives them; with
 * SIZE_RULE_UNKNOWN by what was requested. Only with --resident. */
struct profile_size_class {
	enum size_rule rule;
	__u64 most_bytes; /* usable bytes of a block, or the most of those above 1,024 */
	__u64 blocks, size_bytes;
	__u64 usable_bytes; /* 0 with SIZE_RULE_UNKNOWN */
};

/* Says what a live mapping is for, as far as the system calls tell. */
enum mapping_kind {
	MAPPING_HEAP,	  /* of brk(2) */
	MAPPING_STACK,	  /* of a thread: mapped with MAP_STACK or MAP_GROWSDOWN */
	MAPPING_CODE,	  /* it is, or was, executable: a JIT's */
	MAPPING_RESERVED, /* it cannot be read, written or executed (PROT_NONE) */
	MAPPING_OTHER,
	MAPPING_KINDS,
};

/* A range that a call mapped and that was mapped at the end, or when its process ended; only with
 * --live and --allocator mmap. */
struct profile_mapping {
	__u32 count; /* the calls of which one has mapped it */
	__u64 address, size_bytes;
	enum mapping_kind kind;
	bool was_given_back; /* by madvise(2), and it may have been touched since */
};

/* Something that the recording lacks or has counted wrongly. No two of a run have the same kind, object and detail. */
struct profile_gap {
	__u32 run; /* 0: the recording as a whole */
	enum gap kind;
	__u64 number;	  /* number of calls, processes or whatever the kind counts */
	__u64 size_bytes; /* bytes that the processes of a program took from the kernel */
	__u32 pid;	  /* pid of a program's first process; 0: unknown */
	const char *
		object; /* path of a file, or name of a program or definition; "" if there is none; owned by the profile */
	const char *detail; /* a function, or a clause that says why; owned by the profile, too */
};

struct profile_meta {
	char *key, *value;
};

struct profile_ledger_entry {
	char *name;
	__u64 value;
};

/* meta and ledger of one run. */
struct profile_run {
	struct profile_meta *meta;
	size_t n_meta, meta_room;
	struct profile_ledger_entry *ledger;
	size_t n_ledger, ledger_room;
	struct hash_table meta_index, ledger_index; /* index + 1 by key and by name */
};

/* The profile owns all arrays; elements with ids are at id - 1. Read them freely, but add only
 * through the functions below, which keep the hash tables in @index up to date. */
struct profile {
	struct profile_module *modules;
	size_t n_modules;
	struct profile_process *processes;
	size_t n_processes;
	bool is_labelled_by_group; /* profile__label_by_group() was called */
	struct profile_thread *threads;
	size_t n_threads;
	struct profile_function *functions;
	size_t n_functions;
	struct profile_file *files;
	size_t n_files;
	struct profile_frame *frames;
	size_t n_frames;
	struct profile_stack *stacks;
	size_t n_stacks;
	struct profile_count *counts;
	size_t n_counts;
	struct profile_samples *samples;
	size_t n_samples;
	size_t n_lifetimes;		  /* read by profile__next_lifetime() */
	struct timeline_sample *timeline; /* sorted by run and time */
	size_t n_timeline;
	struct profile_rss *rss; /* by ascending process */
	size_t n_rss;
	struct profile_rss_sample *rss_samples; /* by ascending time */
	size_t n_rss_samples;
	struct profile_mark *marks; /* by time */
	size_t n_marks;
	struct profile_heap *heaps; /* by ascending process */
	size_t n_heaps;
	struct profile_size_class *size_classes;
	size_t n_size_classes;
	struct profile_mapping *mappings;
	size_t n_mappings;
	struct profile_meta *meta;
	size_t n_meta;
	struct profile_ledger_entry *ledger;
	size_t n_ledger;
	struct profile_gap *gaps;
	size_t n_gaps;
	struct profile_run *runs; /* by number - 1; see profile_runs.h */
	size_t n_runs;		  /* 0: there is one run, described by meta and ledger */
	/* Names of the functions of defined allocators; set them before counts of these are added. */
	struct definition_names definitions;
	struct profile_totals totals;
	struct profile_index *index;
};

/* Returns an empty profile, or NULL if there is no memory. */
struct profile *profile__new(void);
void profile__free(struct profile *profile);

/* The adders copy their arguments, and return 0, -ENOMEM, or -EINVAL for an id that does not
 * exist. Adding an element that exists yields its id; counts are added up. */
int profile__add_module(struct profile *profile, const char *path, const char *build_id, __u32 *id);
/* Works like profile__add_module(); @file tells modules apart that have no build id. */
int profile__add_module_file(struct profile *profile, const char *path, const char *build_id,
			     __u64 file, __u32 *id);
int profile__add_process(struct profile *profile, __u32 parent, __u32 pid, __u64 start_ns,
			 const char *comm, __u32 *id); /* always gets a new id; belongs to run 1 */
/* Ends a program; @execed: by an exec. Fails with -EINVAL also if it has already ended. */
int profile__end_process(struct profile *profile, __u32 id, __u64 end_ns, bool execed);
/* Returns whether the process is the child of a fork(2), and has executed nothing since. */
bool profile__is_forked(const struct profile *profile, __u32 process);
/* Returns the id of the last program of the process @pid; 0: it has none. */
__u32 profile__find_process(const struct profile *profile, pid_t pid);
int profile__add_thread(struct profile *profile, __u32 process, const char *name, __u32 *id);
/* Functions are identified by @symbol. If the existing one has three equal names, it gets @name and
 * @full_name; demangled names stay. */
int profile__add_function(struct profile *profile, const char *symbol, const char *name,
			  const char *full_name, __u32 *id);
int profile__add_file(struct profile *profile, const char *path, __u32 *id);
int profile__add_frame(struct profile *profile, __u32 module, __u64 offset,
		       enum profile_place place, __u32 *id);
/* Adds a frame under a new id: for an address without a file, where other code has replaced code. */
int profile__add_other_frame(struct profile *profile, __u64 address, enum profile_place place,
			     __u32 *id);
/* Adds a frame for a tail call. Fails with -EEXIST if the address is known as something else. */
int profile__add_tail_call(struct profile *profile, __u32 module, __u64 offset, __u32 *id);
/* Adds a stack. Stacks that differ only in frames of tail calls are one, which keeps the frames of
 * the first. */
int profile__add_stack(struct profile *profile, const __u32 *frames, size_t n_frames,
		       enum ap_stack_end end, __u32 *id);
/*
 * Replaces the frames of @stack by others that differ only in tail calls. Fails with -EINVAL also
 * if they differ otherwise.
 */
int profile__set_stack_frames(struct profile *profile, __u32 stack, const __u32 *frames,
			      size_t n_frames);
int profile__add_count(struct profile *profile, __u32 thread, __u32 stack,
		       enum ap_function function, __u64 calls, __u64 size_bytes, __u32 *id);
/* Frees the hash table's memory for the present counts. More calls of their threads can be added,
 * but only by a linear search. */
void profile__close_counts(struct profile *profile);
/* Replaces the demangled names of @function. */
int profile__set_function_names(struct profile *profile, __u32 function, const char *name,
				const char *full_name);
int profile__set_module_symbols(struct profile *profile, __u32 module, const char *symbols);
/* Replaces the lines of @frame. Fails with -EINVAL also if a line other than the last is not
 * inlined, or the last is. */
int profile__set_frame_lines(struct profile *profile, __u32 frame, const struct profile_line *lines,
			     __u32 n_lines);
/* Returns whether it is known which live blocks can be reached. */
bool profile__has_reach(const struct profile *profile);
/* Adds @more to the blocks of its count. */
int profile__add_blocks(struct profile *profile, const struct profile_blocks *more);
/* Stores the samples of @count, zeros at first, in *@samples; valid until the next call. */
int profile__get_samples(struct profile *profile, __u32 count, struct profile_samples **samples);
/* Adds a lifetime; entries of the same count and epochs are not merged. Fails with -EINVAL if
 * @lifetime ends before it begins, or in two ways. */
int profile__add_lifetime(struct profile *profile, const struct profile_lifetime *lifetime);
/* Returns the epoch in which the memory was given back, by a free or with the address space, or
 * PROFILE_LIVE. */
__u32 profile_lifetime__end_epoch(const struct profile_lifetime *lifetime);
/* Returns the last epoch that @lifetime names: that of its end, else that of its birth. */
__u32 profile_lifetime__last_epoch(const struct profile_lifetime *lifetime);
/* Makes all epochs longer, by a factor of 2^@by. */
void profile__fold_lifetimes(struct profile *profile, __u32 by);
/* Returns the new number of @epoch; PROFILE_LIVE does not change. */
__u32 profile__fold_epoch(__u32 epoch, __u32 by);
/* Adds a sample of the time line. Fails with -EINVAL also if it is not later than the previous
 * one, or belongs to an earlier run. */
int profile__add_timeline_sample(struct profile *profile, const struct timeline_sample *sample);
/* Adds a part of the resident memory of a process. Fails with -EINVAL also if the
 * process has a part of that kind, or a later process has any. */
int profile__add_rss(struct profile *profile, const struct profile_rss *rss);
/* Adds a live mapping. Fails with -EINVAL also if it has no bytes, or its end exceeds 2^64. */
int profile__add_mapping(struct profile *profile, const struct profile_mapping *mapping);
/* Returns a name such as "heap"; the second function is the reverse, or returns -ENOENT. */
const char *mapping_kind__name(enum mapping_kind kind);
int mapping_kind__by_name(const char *name);
/* Returns the name of a kind in the data file, and the kind of that name or -ENOENT. */
const char *rss_kind__name(enum rss_kind kind);
/* Adds a heap, or a class, the numbers of which are added up. Fails with -EINVAL if the process does
 * not exist or comes before the last one's, or with -ENOMEM. */
int profile__add_heap(struct profile *profile, const struct profile_heap *heap);
int profile__add_size_class(struct profile *profile, const struct profile_size_class *sizes);
/* Add the numbers of @more to *@to. */
void profile_heap__add(struct profile_heap *to, const struct profile_heap *more);
void profile_size_class__add(struct profile_size_class *to, const struct profile_size_class *more);
const char *heap_kind__name(enum heap_kind kind);
int heap_kind__by_name(const char *name);
const char *size_rule__name(enum size_rule rule);
int size_rule__by_name(const char *name);
/* Adds a sample, which must be later than the last one, or fails with -EINVAL; or with -ENOMEM. */
int profile__add_rss_sample(struct profile *profile, const struct profile_rss_sample *sample);
/* Adds a mark, which must not be earlier than the last one, or fails with -EINVAL; or with -ENOMEM. */
int profile__add_mark(struct profile *profile, __u64 time_ns, enum mark_kind kind,
		      const char *name);
const char *mark_kind__name(enum mark_kind kind);
/* Returns -1 if no kind has that name. */
int mark_kind__by_name(const char *name);
/* Sums up the parts of all processes. */
void profile__add_up_rss(const struct profile *profile, __u64 bytes[RSS_KINDS]);
/* Returns the sum of a sample's parts. */
__u64 profile_rss_sample__sum(const struct profile_rss_sample *sample);
int rss_kind__by_name(const char *name);
/* Removes all counts with their blocks; processes, stacks and names stay. */
void profile__forget_counts(struct profile *profile);
/* Frees the memory of all counts, with their blocks, and of all stacks. Only whether the ledger
 * adds up is remembered. */
void profile__free_stacks(struct profile *profile);
int profile__set_meta(struct profile *profile, const char *key, const char *value);
int profile__set_ledger(struct profile *profile, const char *name, __u64 value);
/* Adds @number to the number under the key or name, which is added if it is new. */
int profile__add_meta_number(struct profile *profile, const char *key, __u64 number);
int profile__add_ledger(struct profile *profile, const char *name, __u64 number);
/* Adds a gap, or its numbers to those of the same gap. Texts that are NULL count as "". */
int profile__add_gap(struct profile *profile, const struct profile_gap *gap);
/* Adds the gaps that @from has for @run as gaps of run @to. Both profiles may be the same. */
int profile__add_gaps_of(struct profile *profile, const struct profile *from, __u32 run, __u32 to);
/* Adds the gaps that older recordings have as a number or lines of sentences in meta. Returns 1 if
 * the entry is such a one. */
int profile__add_old_gap(struct profile *profile, __u32 run, const char *key, const char *value);
/* Notes that names could not be read from the file at @path, and why. Returns 0 or -ENOMEM. */
int profile__add_unread(struct profile *profile, const char *path, const char *why);
/* Forgets all that profile__add_unread() has noted, for a new look-up. Returns 0 or -ENOMEM. */
int profile__forget_unread(struct profile *profile);

/* Demangles functions that have only a symbol. Returns 0, -ENOMEM or, if the demangler's filter
 * failed, a negative errno with @error set; all other names are demangled even then. */
int profile__demangle(struct profile *profile, struct demangler *demangler, struct error *error);

/*
 * Fills the ledger: `attributed`, `complete`, `incomplete` and `incomplete_<reason>` from the
 * counts, `lost` and `lost_<reason>` from @lost, and @events, which the caller has counted
 * separately. This is the last step before the data file is written. Returns 0 or -ENOMEM.
 */
int profile__settle_ledger(struct profile *profile, __u64 events,
			   const __u64 lost[AP_LOST_REASONS]);
/* Returns how many blocks of the counts are in no lifetime. */
__u64 profile__blocks_without_lifetime(const struct profile *profile);
/* With sampling, to be called after profile__settle_ledger(): sets `sampled` from the samples, and
 * `not_sampled`. The profile must know its "sample_bytes". Returns 0 or -ENOMEM. */
int profile__settle_samples(struct profile *profile, __u64 not_sampled);
/* Returns whether events = attributed + lost (with sampling: sampled + not_sampled + lost),
 * attributed = complete + incomplete = the sum of all counts, and each sum equals that of its
 * reasons. */
bool profile__ledger_adds_up(const struct profile *profile);
/* Returns whether the blocks of each count agree: they have as many bytes as their histogram of
 * sizes permits; they are no more than the count's calls; and not fewer than the blocks of the
 * peak, of the histogram of lifetimes or of the epochs, of which there are some if there are any
 * blocks. Always true with sampling, and for a copy of live memory that was made while the target
 * ran (GAP_TORN). */
bool profile__blocks_add_up(const struct profile *profile);

/* Returns the frame that profile__add_frame() would return, or NULL. */
const struct profile_frame *profile__find_frame(const struct profile *profile, __u32 module,
						__u64 offset, enum profile_place place);
/* Returns the function that contains @frame's code, not one that is inlined into it; NULL if it is
 * unknown. */
const struct profile_function *profile__frame_function(const struct profile *profile,
						       const struct profile_frame *frame);
/* Returns whether any count has blocks (--live). */
bool profile__has_blocks(const struct profile *profile);
/* Stores the blocks of @count. If it has none, stores zeros and returns false. */
bool profile__count_blocks(const struct profile *profile, const struct profile_count *count,
			   struct profile_blocks *out);
/* Copies the lifetime at *@at, which is 0 for the first, and advances *@at. Returns false at the
 * end. Lifetimes are packed; a value of *@at stays valid until a lifetime is added. */
bool profile__next_lifetime(const struct profile *profile, __u32 *at, struct profile_lifetime *out);
/* Returns the last epoch in which a block was allocated or freed; 0 without lifetimes. */
__u32 profile__last_epoch(const struct profile *profile);
/* Keeps the process's control group. Returns 0 or -ENOMEM. */
int profile__set_group(struct profile *profile, __u32 process, const char *group, const char *name);
/* Keeps the process's command line. Returns 0 or -ENOMEM. */
int profile__set_arguments(struct profile *profile, __u32 process, const char *arguments);
/* Has reports call a process by the name of its control group. Returns 0 or -ENOMEM. */
int profile__label_by_group(struct profile *profile);
/* Has reports call a process by its command line, or by its name where that is not known. Returns 0 or -ENOMEM. */
int profile__label_by_arguments(struct profile *profile);
/* Has reports tell processes of one name apart, by their numbers. Returns 0 or -ENOMEM. */
int profile__label_by_pid(struct profile *profile);
/* Returns what reports call a process. */
const char *profile_process__label(const struct profile_process *process);
/* Returns the sampling period in bytes; 0: calls were not sampled. */
__u64 profile__sample_bytes(const struct profile *profile);
/* Returns whether probes told of samples, which count by their weight. */
bool profile__is_weighted(const struct profile *profile);
/* Returns a bound for calls of which no sample was taken, in sum or with one stack: in 95 of 100
 * recordings they have fewer bytes than this. 0: every call was sampled. */
__u64 profile__unseen_bytes(const struct profile *profile);
/* Returns the samples of @count, or NULL. */
const struct profile_samples *profile__count_samples(const struct profile *profile,
						     const struct profile_count *count);
/* Adds estimates of disjoint samples; results below 0 become 0. */
void profile_estimate__add(struct profile_estimate *to, const struct profile_estimate *more);
void profile_estimate__subtract(struct profile_estimate *from, const struct profile_estimate *less);
/* Adds the numbers of @more to *@to; sums saturate at PROFILE_MAX. */
void profile_blocks__add(struct profile_blocks *to, const struct profile_blocks *more);
__u64 profile_blocks__live(const struct profile_blocks *blocks);
__u64 profile_blocks__live_bytes(const struct profile_blocks *blocks);
/* Returns @a + @b, which saturates at PROFILE_MAX. */
__u64 profile__add_up(__u64 a, __u64 b);

/* Returns the value of the key; NULL if there is no such key. */
const char *profile__meta(const struct profile *profile, const char *key);
/* Returns the value of the key; 0 if there is no such key, or its value is no whole number. */
__u64 profile__meta_number(const struct profile *profile, const char *key);
/* Returns the engine with which the recording was made, as --engine takes it. */
const char *profile__engine(const struct profile *profile);
/* Stores the next gap of the recording as a whole; *@at is 0 at first. Returns false at the end. */
bool profile__next_gap(const struct profile *profile, size_t *at, const struct profile_gap **gap);
/* Returns whether there are any gaps, of regions or of other kinds. */
bool profile__has_gaps(const struct profile *profile, bool of_regions);
/* Returns the number of @kind, added up over all objects. */
__u64 profile__gap(const struct profile *profile, enum gap kind);
/* Returns the ledger's entry; 0 if there is none of this name. */
__u64 profile__ledger(const struct profile *profile, const char *name);
/* Returns the number of calls that were lost for @reason. */
__u64 profile__lost(const struct profile *profile, enum ap_lost reason);

/* Return names as in reports and in the data file: "malloc", "ring_full", "max_depth". The first
 * is only for functions of the known allocators; definition_names.h has the names of all. */
const char *profile__function_name(enum ap_function function);
/* Returns whether the function only frees memory. */
bool profile__function_frees(enum ap_function function);
bool profile__function_reallocates(enum ap_function function);
/* Returns whether the function is a system call that maps or unmaps memory. */
bool profile__function_maps(enum ap_function function);
/* Returns whether the function is a kind of page fault. */
bool profile__function_faults(enum ap_function function);
const char *profile__lost_name(enum ap_lost reason);
const char *profile__untracked_name(enum ap_untracked reason);
const char *profile__stack_end_name(enum ap_stack_end end);
/* Returns the function called @name, or -ENOENT. */
int profile__function_by_name(const char *name);
/* Returns a name such as "calls" or "live"; the second function is the reverse, or returns
 * -ENOENT. */
const char *profile__sampled_name(enum profile_sampled what);
int profile__sampled_by_name(const char *name);
/* Returns the end of stacks called @name, or -ENOENT. */
int profile__stack_end_by_name(const char *name);
/* Returns the part of a module's path behind its last slash. */
/* The path of the module that frames of Python are in, which stand in the place of those of its interpreter. */
#define PROFILE_PYTHON_MODULE "[Python]"

const char *profile_module__basename(const struct profile_module *module);

#endif
