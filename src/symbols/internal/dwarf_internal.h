/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interfaces between dwarf_places.c, dwarf_functions.c and dwarf_units.c. */
#ifndef ALLOCPROF_DWARF_INTERNAL_H
#define ALLOCPROF_DWARF_INTERNAL_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "dwarf_cursor.h"
#include "dwarf_names.h"
#include "dwarf_places.h"

/* A function inlined at an address. */
struct inlined_level {
	struct inlined_level *outer; /* NULL: the concrete function */
	Dwarf_Die die;
};

/* A query during the search. */
struct query {
	struct place *place;
	bool has_unit;
	Dwarf_Off unit;	  /* offset of the compile unit's DIE */
	__u64 unit_bytes; /* size of the unit's range around the address; the smallest wins */
	bool has_function;
	Dwarf_Die function;
	__u64 function_bytes;
	struct inlined_level *innermost;
	__u32 n_levels;
};

struct code_range {
	__u64 start, end;
};

/* Sections with code. DWARF of functions that the linker dropped refers to addresses outside. */
struct code_ranges {
	struct code_range *ranges;
	size_t n;
};

/* 0 or -ENOMEM. Empty for a file without section headers. */
int code_ranges__read(struct code_ranges *code, Elf *elf);

/* Index of the first of @n queries, sorted by address, that is not below @vaddr. */
size_t query__first(const struct query *query, size_t n, __u64 vaddr);

/* Sets the unit of each query by the units' ranges. Units without ranges are listed in @bare, to be
 * freed. 0, -ENOEXEC if something was damaged, -ENOMEM. */
int dwarf_units__assign(Dwarf *dwarf, const struct code_ranges *code, struct query *query, size_t n,
			struct dwarf_budget *budget, Dwarf_Off **bare, size_t *n_bare);

/* Sets the function of each query of one unit that has none. With @bodies also searches functions
 * inside of functions, which is slower. */
void dwarf_functions__find(Dwarf_Die *unit, struct query *query, size_t n,
			   const struct code_ranges *code, struct dwarf_budget *budget,
			   bool bodies);

/*
 * Finds the functions inlined at @n queries, sorted by address, all in one function. 0 or -ENOMEM.
 */
int dwarf_functions__find_inlined(Dwarf_Die *function, struct query *query, size_t n,
				  struct arena *arena, struct dwarf_budget *budget);

/* End of the code section that contains @start, 0 if there is none. */
__u64 code_ranges__limit(const struct code_ranges *code, __u64 start);

#endif
