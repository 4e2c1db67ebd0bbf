/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The unwinding programs of bpf/ on the host: a test gives them memory, mappings and tables. */
#ifndef ALLOCPROF_TESTS_TWIN_H
#define ALLOCPROF_TESTS_TWIN_H

#include <stdbool.h>
#include <stddef.h>

#include "record_abi.h"
#include "unwind_abi.h"
#include "unwind_tables.h"

/* What the programs can read of the process's memory. */
struct twin_memory {
	__u64 start;
	size_t size;
	const void *bytes;
};

struct twin_mapping {
	__u64 start, end, offset;
	__u64 inode; /* 0: anonymous */
	__u32 device;
	bool executable;
};

/* Where the thread stands: at the entry of an allocator's function. */
struct twin_hit {
	__u64 sp, fp;
};

struct twin_walk {
	__u32 n_frames;
	__u32 end; /* enum ap_stack_end */
	__u64 hash;
	struct ap_frame frames[AP_MAX_DEPTH];
	__u32 lookups; /* in tables, mappings and of the kernel's mappings */
	__u32 faults; /* readings of memory that failed; each takes the kernel as long as a page fault */
};

/* Empty maps. All that was set is gone. */
void twin__reset(void);
void twin__free(void);

/* Not copied. */
void twin__set_memory(const struct twin_memory *memory, size_t n);
void twin__set_mappings(const struct twin_mapping *mappings, size_t n);
void twin__set_max_depth(__u32 max_depth);

/* Called with the record of each file that is met first. */
void twin__on_module(void (*meet)(const struct ap_module_record *record));

/* As unwind_write_t, into the programs' maps. */
int twin__write(void *context, enum unwind_map map, __u32 index, const void *value);
void *twin__map_value(enum unwind_map map, __u32 index);

/* Walks as record_call does. */
void twin__walk(const struct twin_hit *hit, struct twin_walk *walk);

/* Before a walk: the thread's last stack is forgotten. */
void twin__forget(void);

/* dlopen() or dlclose(): code is mapped elsewhere. */
void twin__change_code(void);

/* All that is remembered of the thread's last stack; not to be kept over twin__reset(). */
void *twin__memory_of_last(size_t *size);

/* From now on the ring buffer has no room, or has. */
void twin__fill_ring(bool is_full);
/* That user space was sent. */
__u32 twin__count_records(void);
__u64 twin__stat(enum ap_stat which);

/* A hit waits for @module's table, which comes @after_ns from now, by a clock that only the programs advance. User space has just
 * made progress. Returns whether it came in time. */
bool twin__await_table(__u32 module, __u64 after_ns, __u64 *waited_ns);
/* So much of the ring buffer is unread; stacks are sent for user space to unwind below @dump_below_bytes. */
void twin__set_unread(__u64 bytes, __u32 dump_below_bytes);

/* Sends a stack for user space to unwind; false where that is not possible. */
bool twin__dump(void);
/* Numbers of such stacks that are spent. */
__u32 twin__count_dumps(void);

/* Live blocks, of 100 bytes each, in one table with room for so many. */
void twin__set_live_room(__u32 blocks);
/* 0 or a negative errno. */
int twin__put_block(__u64 address);
bool twin__has_block(__u64 address);
/* The thread's call of realloc, and its return. */
void twin__enter_realloc(__u64 address, __u64 size_bytes);
void twin__leave_realloc(__u64 result);

/* Returns whether a program of this name is measured by --name. */
bool twin__joins(const char *pattern, const char *name);

/* Sampling, by ap_sample__configure()'s settings. */
void twin__set_sampling(const struct ap_config *settings);
/* 2^64 where it is certain. */
unsigned __int128 twin__chance(__u64 size_bytes);
__u32 twin__weight(__u64 chance, __u64 draw);
/* By numbers of its own, the same in every run. */
__u32 twin__draw(__u64 size_bytes);
void twin__estimate_add(struct ap_estimate *estimate, __u32 weight, __u64 size_bytes);

#endif
