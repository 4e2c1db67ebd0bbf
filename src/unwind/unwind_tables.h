/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lays out compiled unwind tables for the code that unwinds by them, and writes them to the memory
 * that this code reads. */
#ifndef ALLOCPROF_UNWIND_TABLES_H
#define ALLOCPROF_UNWIND_TABLES_H

#include <linux/types.h>

struct cfi_table;
struct unwind_tables;

/* Arrays of the tables. */
enum unwind_map {
	UNWIND_MAP_CHUNKS, /* struct unwind_chunk; NULL creates the next one, zeroed */
	UNWIND_MAP_TABLES, /* struct unwind_table */
	UNWIND_MAP_SLICES, /* struct unwind_slice */
	UNWIND_MAP_RULES,  /* struct unwind_rule */
};

/* Writes tables to their memory. */
struct unwind_writer {
	/* Writes an element, which the unwinding code sees from then on. Returns 0 or a negative
	 * errno. */
	int (*write)(void *context, enum unwind_map map, __u32 index, const void *value);
	/* Makes room for chunks ahead of need, which may take long. Returns 0 or a negative errno.
	 * May be NULL. */
	int (*prepare)(void *context);
	/* Frees @context. May be NULL. */
	void (*release)(void *context);
	void *context;
};

/* Location of a file's tables; zeroed: none. */
struct loaded_table {
	__u32 first_slice, n_slices;
	/* Size and file offset of an entry point without call frame information. */
	__u32 entry_size;
	__u64 entry_offset;
};

/* Makes the tables. Takes over the writer's context, also on error. Returns NULL if there is no
 * memory. */
struct unwind_tables *unwind_tables__new(const struct unwind_writer *writer);

/* Makes room ahead of need. To be called when nobody waits for a table. Returns 0 or a negative
 * errno. */
int unwind_tables__prepare(struct unwind_tables *tables);

void unwind_tables__free(struct unwind_tables *tables);

/* Loads @table. Fails with -ENOSPC if the maps are full, -ENOMEM, or the error of bpf(2). */
int unwind_tables__load(struct unwind_tables *tables, const struct cfi_table *table,
			struct loaded_table *loaded);

/* Assigns the tables @loaded to @module. Returns 0 or a negative errno. */
int unwind_tables__assign(struct unwind_tables *tables, __u32 module,
			  const struct loaded_table *loaded);

#endif
