/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads compiled unwind tables into the programs' maps. */
#ifndef ALLOCPROF_UNWIND_TABLES_H
#define ALLOCPROF_UNWIND_TABLES_H

#include <linux/types.h>

struct cfi_table;
struct unwind_tables;

/* The maps of bpf/tables.bpf.h. */
struct unwind_tables_fds {
	int chunks, tables, slices, rules;
};

enum unwind_map {
	UNWIND_MAP_CHUNKS, /* struct unwind_chunk; NULL creates the next one, zeroed */
	UNWIND_MAP_TABLES, /* struct unwind_table */
	UNWIND_MAP_SLICES, /* struct unwind_slice */
	UNWIND_MAP_RULES,  /* struct unwind_rule */
};

/* Writes an element, visible to the programs from then on. 0 or a negative errno. */
typedef int (*unwind_write_t)(void *context, enum unwind_map map, __u32 index, const void *value);

/* Location of a file's tables; zeroed: none. */
struct unwind_place {
	__u32 first_slice, n_slices;
	__u32 entry_size; /* entry point without call frame information: size, file offset */
	__u64 entry_offset;
};

/* Writes to the kernel's maps. NULL on ENOMEM. */
struct unwind_tables *unwind_tables__new(const struct unwind_tables_fds *fds);

/* Writes by @write, for tests. NULL on ENOMEM. */
struct unwind_tables *unwind_tables__new_for(unwind_write_t write, void *context);

/* Inserts chunks ahead of need, which takes an RCU grace period: call it when no probe waits for a
 * table. 0 or a negative errno. */
int unwind_tables__prepare(struct unwind_tables *tables);

void unwind_tables__free(struct unwind_tables *tables);

/* Loads @table. -ENOSPC if the maps are full, -ENOMEM, or the error of bpf(2). */
int unwind_tables__load(struct unwind_tables *tables, const struct cfi_table *table,
			struct unwind_place *place);

/* Assigns the tables at @place to @module. 0 or a negative errno. */
int unwind_tables__assign(struct unwind_tables *tables, __u32 module,
			  const struct unwind_place *place);

/* Bytes used in the kernel. */
__u64 unwind_tables__size_bytes(const struct unwind_tables *tables);

#endif
