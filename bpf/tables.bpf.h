/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The unwind tables that user space compiled (unwind_abi.h). */
#ifndef ALLOCPROF_TABLES_BPF_H
#define ALLOCPROF_TABLES_BPF_H

#include "kernel.h"
#include "unwind_abi.h"

/* One value of 1 MiB, so that a search inside it is pointer arithmetic, without a map look-up per
 * step. */
struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_chunk));
};

struct unwind_chunks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_MAX_CHUNKS);
	__type(key, __u32);
	__array(values, struct chunk_map);
};

extern struct unwind_chunks_map unwind_chunks SEC(".maps");

struct unwind_tables_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_MAX_MODULES);
	__type(key, __u32);
	__type(value, struct unwind_table);
};

extern struct unwind_tables_map unwind_tables SEC(".maps");

struct unwind_slices_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_MAX_SLICES);
	__type(key, __u32);
	__type(value, struct unwind_slice);
};

extern struct unwind_slices_map unwind_slices SEC(".maps");

struct unwind_rules_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_MAX_RULES_LOADED);
	__type(key, __u32);
	__type(value, struct unwind_rule);
};

extern struct unwind_rules_map unwind_rules SEC(".maps");

#endif
