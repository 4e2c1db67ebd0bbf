/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A profile: what a recording found out, in memory, and exactly what the data file keeps
 * (allocprof-data(5)). Capture fills one, data_file writes and reads it, reports walk it.
 */
#ifndef ALLOCPROF_PROFILE_H
#define ALLOCPROF_PROFILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "source_names.h"

struct demangler;
struct error;

/* The most that a sum can hold: what SQL's signed integers can. Failed calls may ask for nearly 2^64
 * bytes each, so sums stop here instead of starting again from 0. */
#define PROFILE_MAX ((__u64)INT64_MAX)

/* A file (or the vDSO) that code was mapped from. Ids count from 1; 0 is "no module". */
struct profile_module {
	__u32 id;
	char *path;	/* as mapped; owned by the profile */
	char *build_id; /* lower-case hex, "" where the file has none or could not be read; owned */
	char *symbols; /* where its names came from, or why it has none; "" until asked for; owned */
	__u64 file; /* tells files of one path without build ids apart: a number of the file's while
			* it is recorded, else any */
};

/* One process image: an exec starts a new one under the same pid. Ids count from 1. */
struct profile_process {
	__u32 id;
	__u32 parent;	/* id of the image that forked or exec'ed this one; 0 for the first */
	__u32 pid;	/* as allocprof's PID namespace numbers it */
	__u64 start_ns; /* CLOCK_MONOTONIC, of the fork or exec that began the image */
	__u64 end_ns;	/* CLOCK_MONOTONIC; 0 where it outlived the recording */
	bool execed;	/* it ended by an exec: its memory was discarded, not left behind */
	__u32 run;	/* of several that a recording made one after the other, from 1 */
	char *comm;	/* owned */
};

/* All threads of a process image that had one name when they called. Ids count from 1. */
struct profile_thread {
	__u32 id;
	__u32 process;
	char *name;	/* owned */
	bool is_closed; /* its counts are closed */
};

/* A function's names: as the linker knows it, short for people, and in full. No two have one symbol.
 * Ids count from 1. */
struct profile_function {
	__u32 id;
	char *symbol;	 /* owned, as the others; all three are equal where nothing is mangled */
	char *name;	 /* demangled without parameters and default template arguments */
	char *full_name; /* demangled with everything */
};

/* A source file. Ids count from 1. */
struct profile_file {
	__u32 id;
	char *path; /* as the debug information has it; owned */
};

/* What a place in code belongs to. */
struct profile_line {
	__u32 function;
	__u32 file; /* 0: unknown */
	__u32 line; /* 0: unknown */
	bool inlined;
};

/* A distinct place in code. Ids count from 1. */
struct profile_frame {
	__u32 id;
	__u32 module;	  /* module id; 0 where no mapping is known: then @offset is an address */
	__u64 offset;	  /* the module's ELF virtual address */
	bool interrupted; /* a signal came at @offset; else it is a return address, so look up
			   * @offset - 1 */
	bool tail_call; /* the function left at @offset, the end of the jump, by calling the next one inner to
			   * it: its frame was gone by then, and was put back */
	struct profile_line *lines; /* innermost first; only the last is not inlined; owned */
	__u32 n_lines;		    /* 0 until symbolized or where no name is known */
};

/* A distinct list of frames with its end. Ids count from 1. */
struct profile_stack {
	__u32 id;
	enum ap_stack_end end;
	__u32 n_frames;
	__u32 *frames; /* frame ids, innermost (the allocator's caller) first; owned */
};

/* Calls of one function from one stack by one thread name of one process image. Ids count from 1. */
struct profile_count {
	__u32 id;
	__u32 process; /* the thread's */
	__u32 thread;
	__u32 stack;
	enum ap_function function;
	__u32 blocks; /* where its blocks are packed, + 1; 0: it has none */
	__u64 calls;
	__u64 size_bytes; /* requested by these calls, summed; no more than PROFILE_MAX */
};

/* Buckets of a histogram: bucket n holds values of n significant bits, so 2^(n-1) to 2^n - 1, and
 * bucket 0 holds 0. */
#define PROFILE_BUCKETS 65

/* What became of the memory that the calls of one count got; known only with --live. A realloc ends
 * one block and begins another, of its own stack. live = allocations - frees - discarded. */
struct profile_blocks {
	__u32 count;
	__u64 failed; /* calls that got no memory */
	__u64 allocations, size_bytes;
	__u64 frees, freed_bytes;	  /* of these blocks, by whoever and wherever */
	__u64 discarded, discarded_bytes; /* ended with their address space at an exec */
	__u64 temporary, temporary_bytes; /* freed before the same thread's next allocation */
	__u64 peak, peak_bytes; /* live at the high-water mark of all processes together */
	__u64 oldest_ns; /* from the recording's start to the birth of the oldest that is live */
	__u64 sizes[PROFILE_BUCKETS];	  /* blocks by bytes asked for */
	__u64 lifetimes[PROFILE_BUCKETS]; /* blocks that were freed, by nanoseconds from allocator's
					   * return to free */
};

/* What a number is an estimate from, where bytes were sampled. */
struct profile_estimate {
	__u64 samples;	       /* calls or blocks that were looked at */
	double variance;       /* estimated; of the number */
	double bytes_variance; /* of its bytes */
};

/* The numbers of a count that have one. */
enum profile_sampled {
	PROFILE_SAMPLED_CALLS,
	/* With --live. */
	PROFILE_SAMPLED_ALLOCATIONS,
	PROFILE_SAMPLED_LIVE,
	PROFILE_SAMPLED_TEMPORARY,
	PROFILE_SAMPLED,
};

struct profile_samples {
	__u32 count;
	struct profile_estimate of[PROFILE_SAMPLED];
};

/* Died in no epoch: live when the recording ended. */
#define PROFILE_LIVE UINT32_MAX

/* Blocks of one count by the epochs (meta "epoch_ns" long, the first is 0) of birth and death. */
struct profile_lifetime {
	__u32 count;
	__u32 born, died; /* died may be PROFILE_LIVE */
	__u64 blocks, size_bytes;
};

/* One moment of the time line. */
struct profile_moment {
	__u64 time_ns; /* since the start of the recording, or of its run */
	__u64 live, live_bytes;
	__u64 allocations, size_bytes; /* since the start */
	__u64 rss_bytes;	       /* anonymous resident memory of all followed processes */
	__u32 run;		       /* as a process's; 0 becomes 1 */
};

struct profile_meta {
	char *key, *value;
};

struct profile_ledger_entry {
	char *name;
	__u64 value;
};

/* What meta and ledger said when a run was alone. */
struct profile_run {
	struct profile_meta *meta;
	size_t n_meta;
	struct profile_ledger_entry *ledger;
	size_t n_ledger;
};

/* Each array is owned by the profile and, where its elements have ids, indexed by id - 1. Read freely; add
 * through the functions below, which keep the indexes (hash tables in @index) in step. */
struct profile {
	struct profile_module *modules;
	size_t n_modules;
	struct profile_process *processes;
	size_t n_processes;
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
	size_t n_lifetimes;		 /* for profile__next_lifetime() */
	struct profile_moment *timeline; /* by run and time */
	size_t n_timeline;
	struct profile_meta *meta;
	size_t n_meta;
	struct profile_ledger_entry *ledger;
	size_t n_ledger;
	struct profile_run *runs; /* by number - 1; see profile_runs.h */
	size_t n_runs; /* 0: the recording was of one run, which meta and ledger tell of */
	/* What the functions of defined sources are called; set freely, before there are counts of them. */
	struct source_names sources;
	struct profile_index *index;
};

/* An empty profile, or NULL without memory. */
struct profile *profile__new(void);
void profile__free(struct profile *profile);

/*
 * The adders return 0 or -ENOMEM (-EINVAL for an id that does not exist) and copy what they are
 * given. Adding what is there already yields the old id; counts are added up.
 */
int profile__add_module(struct profile *profile, const char *path, const char *build_id, __u32 *id);
/* The same, where only those without a build id are told apart by @file as well. */
int profile__add_module_file(struct profile *profile, const char *path, const char *build_id,
			     __u64 file, __u32 *id);
int profile__add_process(struct profile *profile, __u32 parent, __u32 pid, __u64 start_ns,
			 const char *comm, __u32 *id); /* always a new id, of run 1 */
/* @execed: by an exec. -EINVAL also where it had ended. */
int profile__end_process(struct profile *profile, __u32 id, __u64 end_ns, bool execed);
int profile__add_thread(struct profile *profile, __u32 process, const char *name, __u32 *id);
/* A function is known by @symbol alone. Where it is there as linked, that is with three equal names, it
 * gets @name and @full_name; names that were demangled before stay. */
int profile__add_function(struct profile *profile, const char *symbol, const char *name,
			  const char *full_name, __u32 *id);
int profile__add_file(struct profile *profile, const char *path, __u32 *id);
int profile__add_frame(struct profile *profile, __u32 module, __u64 offset, bool interrupted,
		       __u32 *id);
/* Always a new id: of an address, in code that no file has, where other code was before. */
int profile__add_other_frame(struct profile *profile, __u64 address, bool interrupted, __u32 *id);
/* A frame that a tail call removed. -EEXIST: something else is known at that place. */
int profile__add_tail_call(struct profile *profile, __u32 module, __u64 offset, __u32 *id);
/* Stacks that differ only in frames that tail calls removed are one, with those of the first. */
int profile__add_stack(struct profile *profile, const __u32 *frames, size_t n_frames,
		       enum ap_stack_end end, __u32 *id);
/* Replaces the frames of @stack, which differ from those that it has in tail calls only. -EINVAL also where they
 * do not. */
int profile__set_stack_frames(struct profile *profile, __u32 stack, const __u32 *frames,
			      size_t n_frames);
int profile__add_count(struct profile *profile, __u32 thread, __u32 stack,
		       enum ap_function function, __u64 calls, __u64 size_bytes, __u32 *id);
/* Gives back the memory by which counts are found that are there now. Those of their threads are expected to get no
 * more calls: they can, but are looked for one by one. */
void profile__close_counts(struct profile *profile);
/* Replaces the two demangled names of @function. */
int profile__set_function_names(struct profile *profile, __u32 function, const char *name,
				const char *full_name);
int profile__set_module_symbols(struct profile *profile, __u32 module, const char *symbols);
/* Replaces what @frame belongs to. -EINVAL also where not the last line alone is not inlined. */
int profile__set_frame_lines(struct profile *profile, __u32 frame, const struct profile_line *lines,
			     __u32 n_lines);
/* Adds @more to the blocks of its count. */
int profile__add_blocks(struct profile *profile, const struct profile_blocks *more);
/* The samples of @count, which begin with zeros; valid until the next call of this. */
int profile__get_samples(struct profile *profile, __u32 count, struct profile_samples **samples);
/* What has the same count and epochs as another may stand beside it. */
int profile__add_lifetime(struct profile *profile, __u32 count, __u32 born, __u32 died,
			  __u64 blocks, __u64 size_bytes);
/* All epochs of lifetimes become 2^@by times as long. */
void profile__fold_lifetimes(struct profile *profile, __u32 by);
/* The number of @epoch then; PROFILE_LIVE stays. */
__u32 profile__fold_epoch(__u32 epoch, __u32 by);
/* -EINVAL also where @moment is not later than the one before, or of an earlier run. */
int profile__add_moment(struct profile *profile, const struct profile_moment *moment);
/* Removes all counts and what is known of their blocks; processes, stacks and names stay. */
void profile__forget_counts(struct profile *profile);
int profile__set_meta(struct profile *profile, const char *key, const char *value);
int profile__set_ledger(struct profile *profile, const char *name, __u64 value);

/*
 * Demangles the functions whose name is still the linker's. 0, -ENOMEM, or, where the demangler's
 * filter failed, a negative errno with @error set: all that could be named is named then too.
 */
int profile__demangle(struct profile *profile, struct demangler *demangler, struct error *error);

/*
 * Writes the whole ledger: `attributed`, `complete`, `incomplete` and `incomplete_<reason>` from the
 * counts, `lost` and `lost_<reason>` from @lost, and `events`, which the caller counted apart.
 * Last thing before the data file. 0 or -ENOMEM.
 */
int profile__settle_ledger(struct profile *profile, __u64 events,
			   const __u64 lost[AP_LOST_REASONS]);
/* With sampling, after it: `sampled` from the samples, and `not_sampled`. The profile knows its
 * "sample_bytes" by then. 0 or -ENOMEM. */
int profile__settle_samples(struct profile *profile, __u64 not_sampled);
/* Whether events = attributed + lost (with sampling sampled + not_sampled + lost), attributed = complete + incomplete = the sum of all counts,
 * and each sum is that of its reasons. */
bool profile__ledger_adds_up(const struct profile *profile);

/* The frame that profile__add_frame() would find, or NULL. */
const struct profile_frame *profile__find_frame(const struct profile *profile, __u32 module,
						__u64 offset, bool interrupted);
/* The function that has the code of @frame, not one inlined into it; NULL where none is known. */
const struct profile_function *profile__frame_function(const struct profile *profile,
						       const struct profile_frame *frame);
/* Whether any count has blocks. */
bool profile__has_blocks(const struct profile *profile);
/* Sets *@out to the blocks of @count, to zeros where it has none: then false. */
bool profile__count_blocks(const struct profile *profile, const struct profile_count *count,
			   struct profile_blocks *out);
/* Copies the lifetime at *@at, which is 0 for the first, and moves *@at on to the next one. False behind the last.
 * The profile keeps lifetimes packed: a value of *@at leads to the same lifetime again until one is added. */
bool profile__next_lifetime(const struct profile *profile, __u32 *at, struct profile_lifetime *out);
/* The bytes of which one was chosen by sampling, 0: none were sampled. */
__u64 profile__sample_bytes(const struct profile *profile);
/* The samples of @count, or NULL. */
const struct profile_samples *profile__count_samples(const struct profile *profile,
						     const struct profile_count *count);
/* Both are of samples that have none in common; nothing becomes less than 0. */
void profile_estimate__add(struct profile_estimate *to, const struct profile_estimate *more);
void profile_estimate__subtract(struct profile_estimate *from, const struct profile_estimate *less);
__u64 profile_blocks__live(const struct profile_blocks *blocks);
__u64 profile_blocks__live_bytes(const struct profile_blocks *blocks);
/* The bucket of a histogram that @value belongs to. */
unsigned int profile__bucket(__u64 value);
/* @a + @b, or PROFILE_MAX where that is more. */
__u64 profile__add_up(__u64 a, __u64 b);

/* NULL where the key is not there. */
const char *profile__meta(const struct profile *profile, const char *key);
/* 0 where the name is not there. */
__u64 profile__ledger(const struct profile *profile, const char *name);

/* Names as reports and the data file spell them: "malloc", "ring_full", "max_depth". Those of functions are of
 * the allocators that are known; source_names.h has all. */
const char *profile__function_name(enum ap_function function);
/* Whether it gives memory back and gets none. */
bool profile__function_frees(enum ap_function function);
bool profile__function_reallocates(enum ap_function function);
/* Whether it takes memory from the kernel or gives it back, by a system call. */
bool profile__function_maps(enum ap_function function);
const char *profile__lost_name(enum ap_lost reason);
const char *profile__untracked_name(enum ap_untracked reason);
const char *profile__stack_end_name(enum ap_stack_end end);
/* The function called @name, or -ENOENT. */
int profile__function_by_name(const char *name);
/* "calls", "live"; and what is called so, or -ENOENT. */
const char *profile__sampled_name(enum profile_sampled what);
int profile__sampled_by_name(const char *name);
/* The stack end called @name, or -ENOENT. */
int profile__stack_end_by_name(const char *name);
/* The part of a module's path after its last slash. */
const char *profile_module__basename(const struct profile_module *module);

#endif
