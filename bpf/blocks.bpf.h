/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of live blocks, and statistics of ended blocks (docs/live.md). */
#ifndef ALLOCPROF_BLOCKS_BPF_H
#define ALLOCPROF_BLOCKS_BPF_H

#include "arch.bpf.h"
#include "events.bpf.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "records.bpf.h"
#include "sample.bpf.h"

struct live_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct ap_block_key));
	__uint(value_size, sizeof(struct ap_block));
};

/* Each table is larger than the one before; user space adds the next one before the last is
 * full. */
struct live_tables_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, AP_LIVE_TABLES);
	__type(key, __u32);
	__array(values, struct live_table);
};

extern struct live_tables_map live_tables SEC(".maps");

/* Keyed by bpf_get_current_pid_tgid(). */
struct threads_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ap_thread);
};

extern struct threads_map threads SEC(".maps");

/* Initial value of a thread's entry, which is too large for the BPF stack. */
extern struct ap_thread fresh_thread;

/* The map that programs count lifetimes into; one entry, so that libbpf's template map is small. */
struct lifetimes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct ap_lifetime_key));
	__uint(value_size, sizeof(struct ap_lifetime));
};

struct lifetimes_maps {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct lifetimes_map);
};

extern struct lifetimes_maps lifetimes SEC(".maps");

/* Lifetimes inserted since user space swapped the maps; user space resets it. */
extern __u64 lifetimes_inserted;

/*
 * These are global, so that the verifier checks each once, and not for all states in which the programs
 * call it. Their results are 0 or 1 where nothing else is said.
 */

/* Counts a new block, which is in the tables already. */
int block__begin(struct process *process, const struct ap_block *block);

/* Counts the end of a block at @address that is out of the tables; @how: enum ap_block_end. */
int block__end(struct process *process, const struct ap_block *block, __u64 address, __u64 now,
	       __u32 how);

/* Removes the block at @key from the tables; 0 if there is none. */
int blocks__take(const struct ap_block_key *key, struct ap_block *out);

int blocks__has(const struct ap_block_key *key);

/* Puts the block into the newest table with room. Returns 0, -EEXIST (17), or the last table's
 * error. */
int blocks__put(const struct ap_block_key *key, const struct ap_block *block);

#endif
