// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The maps that several objects use. This object is linked first: the linker of libbpf 1.1 and 1.5 loses
 * the place of a map that was declared in an object before the one that defines it ("map relo failed to
 * find map").
 */
/* The headers' functions are not called here. */
#pragma clang diagnostic ignored "-Wunused-function"

#include "blocks.bpf.h"
#include "counting.bpf.h"
#include "gate.bpf.h"
#include "hit.bpf.h"
#include "maps.bpf.h"
#include "nest.bpf.h"
#include "process.bpf.h"
#include "records.bpf.h"
#include "regions.bpf.h"
#include "scratch.bpf.h"
#include "send.bpf.h"
#include "sent.bpf.h"
#include "sites.bpf.h"
#include "tables.bpf.h"

struct ring_map ring SEC(".maps");
struct stats_map stats SEC(".maps");

struct sites_map sites SEC(".maps");
struct internal_returns_map internal_returns SEC(".maps");

struct processes_map processes SEC(".maps");

struct within_ranges_map within_ranges SEC(".maps");

struct tail_calls_map tail_calls SEC(".maps");
struct jumps_map jumps SEC(".maps");

struct nests_map nests SEC(".maps");

struct site_counts_map site_counts SEC(".maps");

struct stacks_sent_map stacks_sent SEC(".maps");

/* Programs count into one map while user space drains the other, so that no counter changes while
 * it is read and deleted. Sizes in place of types, as in struct counts_map: Linux 6.1 takes a map with
 * types for another kind. Not preallocated: that takes a third of the start. Where the kernel has no
 * memory at once, the call is sent through the ring buffer. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__uint(key_size, sizeof(struct ap_count_key));
	__uint(value_size, sizeof(struct ap_count));
} counts_a SEC(".maps"), counts_b SEC(".maps");

/* User space puts the first map in: the linker would lose the initial value of a map that other objects
 * use. */
struct counts_maps counts SEC(".maps");

struct unwind_chunks_map unwind_chunks SEC(".maps");
struct unwind_tables_map unwind_tables SEC(".maps");
struct unwind_slices_map unwind_slices SEC(".maps");
struct unwind_rules_map unwind_rules SEC(".maps");

struct scratches_map scratches SEC(".maps");

struct records_map records SEC(".maps");
struct histograms_map histograms SEC(".maps");
struct index_tables_map index_tables SEC(".maps");
struct free_map free_records SEC(".maps"), free_histograms SEC(".maps");

struct live_tables_map live_tables SEC(".maps");
struct threads_map threads SEC(".maps");

/* Programs count into one map while user space drains the other, as with the counts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__uint(key_size, sizeof(struct ap_lifetime_key));
	__uint(value_size, sizeof(struct ap_lifetime));
} lifetimes_a SEC(".maps"), lifetimes_b SEC(".maps");

struct lifetimes_maps lifetimes SEC(".maps");

struct region_threads_map region_threads SEC(".maps");
struct region_counts_map region_counts SEC(".maps");
