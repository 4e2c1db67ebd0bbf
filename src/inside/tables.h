/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks up unwind rules in the tables that allocprof compiled, in the layout of unwind_abi.h. */
#ifndef ALLOCPROF_INSIDE_TABLES_H
#define ALLOCPROF_INSIDE_TABLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "unwind_abi.h"

/* The unwind tables, in memory that only allocprof writes. A chunk that is not mapped yet is NULL. */
struct tables {
	const struct unwind_table *tables;
	const struct unwind_slice *slices;
	const struct unwind_rule *rules;
	const struct unwind_chunk *chunks[UNWIND_MAX_CHUNKS];
	const struct ap_within *within; /* indexed by module number; NULL without --within */
};

extern struct tables tables __attribute__((visibility("hidden")));

/* Maps a chunk. Returns NULL on failure. */
const struct unwind_chunk *tables__map_chunk(__u32 index);

/* Returns the table of a module; NULL if the module number is out of range. */
static inline const struct unwind_table *tables__of(__u32 module)
{
	return tables.tables && module && module < UNWIND_MAX_MODULES ? &tables.tables[module]
								      : NULL;
}

/* Returns the slice that contains the file offset, or NULL. */
const struct unwind_slice *tables__slice(const struct unwind_table *table, __u64 file_offset);

/* Returns whether the file offset is in the code of a function of --within. */
bool tables__is_within(__u32 module, __u64 file_offset);

/* Returns the rule at @offset inside @slice; NULL if the table is damaged. */
const struct unwind_rule *slice__rule(const struct unwind_slice *slice, __u32 offset);

#endif
