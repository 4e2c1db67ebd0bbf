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

struct error;

/* The most that a sum can hold: what SQL's signed integers can. Failed calls may ask for nearly 2^64
 * bytes each, so sums stop here instead of starting again from 0. */
#define PROFILE_MAX ((__u64)INT64_MAX)

/* A file (or the vDSO) that code was mapped from. Ids count from 1; 0 is "no module". */
struct profile_module {
	__u32 id;
	char *path;	/* as mapped; owned by the profile */
	char *build_id; /* lower-case hex, "" where the file has none or could not be read; owned */
};

/* One process image: an exec starts a new one under the same pid. Ids count from 1. */
struct profile_process {
	__u32 id;
	__u32 parent;	/* id of the image that forked or exec'ed this one; 0 for the first */
	__u32 pid;	/* as allocprof's PID namespace numbers it */
	__u64 start_ns; /* CLOCK_MONOTONIC, of the fork or exec that began the image */
	char *comm;	/* owned */
};

/* A distinct place in code. Ids count from 1. */
struct profile_frame {
	__u32 id;
	__u32 module; /* module id; 0 where no mapping is known: then @offset is an address */
	__u64 offset; /* the module's ELF virtual address; a return address, so look up offset-1 */
	char *function; /* demangled name; NULL until symbolized or where none is known; owned */
};

/* A distinct list of frames with its end. Ids count from 1. */
struct profile_stack {
	__u32 id;
	enum ap_stack_end end;
	__u32 n_frames;
	__u32 *frames; /* frame ids, innermost (the allocator's caller) first; owned */
};

/* Calls of one function from one stack in one process image. */
struct profile_count {
	__u32 process;
	__u32 stack;
	enum ap_function function;
	__u64 calls;
	__u64 size_bytes; /* requested by these calls, summed; no more than PROFILE_MAX */
};

struct profile_meta {
	char *key, *value;
};

struct profile_ledger_entry {
	char *name;
	__u64 value;
};

/* Each array is owned by the profile and, but for counts, indexed by id - 1. Read freely; add
 * through the functions below, which keep the indexes (hash tables in @index) in step. */
struct profile {
	struct profile_module *modules;
	size_t n_modules;
	struct profile_process *processes;
	size_t n_processes;
	struct profile_frame *frames;
	size_t n_frames;
	struct profile_stack *stacks;
	size_t n_stacks;
	struct profile_count *counts;
	size_t n_counts;
	struct profile_meta *meta;
	size_t n_meta;
	struct profile_ledger_entry *ledger;
	size_t n_ledger;
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
int profile__add_process(struct profile *profile, __u32 parent, __u32 pid, __u64 start_ns,
			 const char *comm, __u32 *id); /* always a new id */
int profile__add_frame(struct profile *profile, __u32 module, __u64 offset, __u32 *id);
int profile__add_stack(struct profile *profile, const __u32 *frames, size_t n_frames,
		       enum ap_stack_end end, __u32 *id);
int profile__add_count(struct profile *profile, __u32 process, __u32 stack,
		       enum ap_function function, __u64 calls, __u64 size_bytes);
/* Replaces the name of @frame; NULL takes it away. */
int profile__set_frame_function(struct profile *profile, __u32 frame, const char *function);
int profile__set_meta(struct profile *profile, const char *key, const char *value);
int profile__set_ledger(struct profile *profile, const char *name, __u64 value);

/*
 * Writes the whole ledger: `attributed`, `complete`, `incomplete` and `incomplete_<reason>` from the
 * counts, `lost` and `lost_<reason>` from @lost, and `events`, which the caller counted apart.
 * Last thing before the data file. 0 or -ENOMEM.
 */
int profile__settle_ledger(struct profile *profile, __u64 events,
			   const __u64 lost[AP_LOST_REASONS]);
/* Whether events = attributed + lost, attributed = complete + incomplete = the sum of all counts,
 * and each sum is that of its reasons. */
bool profile__ledger_adds_up(const struct profile *profile);

/* NULL where the key is not there. */
const char *profile__meta(const struct profile *profile, const char *key);
/* 0 where the name is not there. */
__u64 profile__ledger(const struct profile *profile, const char *name);

/* Names as reports and the data file spell them: "malloc", "ring_full", "max_depth". */
const char *profile__function_name(enum ap_function function);
const char *profile__lost_name(enum ap_lost reason);
const char *profile__stack_end_name(enum ap_stack_end end);
/* The function called @name, or -ENOENT. */
int profile__function_by_name(const char *name);
/* The stack end called @name, or -ENOENT. */
int profile__stack_end_by_name(const char *name);
/* The part of a module's path after its last slash. */
const char *profile_module__basename(const struct profile_module *module);

#endif
