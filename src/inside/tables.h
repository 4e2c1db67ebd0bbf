/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks up unwind rules in the tables that allocprof compiled, in the layout of unwind_abi.h. */
#ifndef ALLOCPROF_INSIDE_TABLES_H
#define ALLOCPROF_INSIDE_TABLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "unwind_abi.h"

/* The tables, in memory that only allocprof writes. Chunks that are not mapped yet are NULL. */
struct tables {
	const struct unwind_table *tables;
	const struct unwind_slice *slices;
	const struct unwind_rule *rules;
	const struct unwind_chunk *chunks[UNWIND_MAX_CHUNKS];
	const struct ap_within *within; /* by module; NULL without --within */
};

extern struct tables tables __attribute__((visibility("hidden")));

/* Maps the chunk; NULL on failure. */
const struct unwind_chunk *tables__map_chunk(__u32 index);

/* The table of a module; NULL if its number cannot be right. */
static inline const struct unwind_table *tables__of(__u32 module)
{
	return tables.tables && module && module < UNWIND_MAX_MODULES ? &tables.tables[module]
								      : NULL;
}

/* The slice that holds the file offset, or NULL. */
const struct unwind_slice *tables__slice(const struct unwind_table *table, __u64 file_offset);

/* Whether the file offset is in the code of a function of --within. */
bool tables__is_within(__u32 module, __u64 file_offset);

/* The rule at @offset inside @slice; NULL if the table is damaged. */
const struct unwind_rule *slice__rule(const struct unwind_slice *slice, __u32 offset);

#endif
