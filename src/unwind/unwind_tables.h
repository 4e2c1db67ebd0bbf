/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts compiled call frame information into the maps where the programs look it up. */
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
	UNWIND_MAP_CHUNKS, /* struct unwind_chunk; NULL makes the next one, all 0 */
	UNWIND_MAP_TABLES, /* struct unwind_table */
	UNWIND_MAP_SLICES, /* struct unwind_slice */
	UNWIND_MAP_RULES,  /* struct unwind_rule */
};

/* Writes an element that the programs see from then on. 0 or a negative errno. */
typedef int (*unwind_write_t)(void *context, enum unwind_map map, __u32 index, const void *value);

/* Where a file's tables are; zeroed: it has none. */
struct unwind_place {
	__u32 first_slice, n_slices;
	__u32 entry_size; /* code at the entry point that nothing describes: bytes, file offset */
	__u64 entry_offset;
};

/* Writes to the kernel's maps. NULL without memory. */
struct unwind_tables *unwind_tables__new(const struct unwind_tables_fds *fds);

/* Writes wherever @write puts it; for tests. NULL without memory. */
struct unwind_tables *unwind_tables__new_for(unwind_write_t write, void *context);

/* Makes room ahead where little is left, which takes a grace period of the kernel's: to be called when no hit waits
 * for a table. 0 or a negative errno. */
int unwind_tables__prepare(struct unwind_tables *tables);

void unwind_tables__free(struct unwind_tables *tables);

/* Loads @table once. -ENOSPC where the maps are full, -ENOMEM, or what bpf(2) said. */
int unwind_tables__load(struct unwind_tables *tables, const struct cfi_table *table,
			struct unwind_place *place);

/* Lets the programs use what is at @place for @module. 0 or a negative errno. */
int unwind_tables__assign(struct unwind_tables *tables, __u32 module,
			  const struct unwind_place *place);

/* Bytes in use in the kernel. */
__u64 unwind_tables__size_bytes(const struct unwind_tables *tables);

#endif
