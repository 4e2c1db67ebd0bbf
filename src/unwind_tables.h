/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts compiled call frame information into the maps where the programs look it up. */
#ifndef ALLOCPROF_UNWIND_TABLES_H
#define ALLOCPROF_UNWIND_TABLES_H

#include <linux/types.h>

struct cfi_table;
struct unwind_tables;

struct unwind_tables_fds {
	int chunks, tables, slices, rules; /* the maps of bpf/tables.bpf.h */
};

/* Where a file's tables are; zeroed: it has none. */
struct unwind_place {
	__u32 first_slice, n_slices;
	__u32 entry_size; /* code at the entry point that nothing describes: bytes, file offset */
	__u64 entry_offset;
};

/* NULL without memory. */
struct unwind_tables *unwind_tables__new(const struct unwind_tables_fds *fds);
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
