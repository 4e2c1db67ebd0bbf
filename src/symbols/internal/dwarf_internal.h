/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What dwarf_places.c, dwarf_functions.c and dwarf_units.c share. */
#ifndef ALLOCPROF_DWARF_INTERNAL_H
#define ALLOCPROF_DWARF_INTERNAL_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "dwarf_names.h"
#include "dwarf_places.h"

/* A function that was inlined at a place. */
struct inlined_level {
	struct inlined_level *outer; /* NULL: the function itself */
	Dwarf_Die die;
};

/* A place while its unit is looked at. */
struct sought {
	struct place *place;
	bool has_unit;
	Dwarf_Off unit;	  /* of the compile unit's DIE */
	__u64 unit_bytes; /* of the unit's range that the place is in; the narrowest wins */
	bool has_function;
	Dwarf_Die function;
	__u64 function_bytes;
	struct inlined_level *innermost;
	__u32 n_levels;
};

struct code_range {
	__u64 start, end;
};

/* Sections with code. Debug information of functions that the linker left out is elsewhere. */
struct code_ranges {
	struct code_range *ranges;
	size_t n;
};

/* 0 or -ENOMEM. None is found in a file without section headers. */
int code_ranges__read(struct code_ranges *code, Elf *elf);

/* The first of the @n, which are sorted by address, that is not below @vaddr. */
size_t sought__first(const struct sought *sought, size_t n, __u64 vaddr);

/* Gives each its unit, by the units' ranges. Those of units without ranges get none; the units are
 * listed in @bare, which is to be freed. 0, -ENOEXEC where something was damaged, -ENOMEM. */
int dwarf_units__assign(Dwarf *dwarf, const struct code_ranges *code, struct sought *sought,
			size_t n, struct dwarf_budget *budget, Dwarf_Off **bare, size_t *n_bare);

/* Finds the function of each of the @n of one unit that has none yet. With @bodies also functions
 * inside of functions, which takes longer. */
void dwarf_functions__find(Dwarf_Die *unit, struct sought *sought, size_t n,
			   const struct code_ranges *code, struct dwarf_budget *budget,
			   bool bodies);

/* Finds what was inlined at the @n places, which all are in one function, sorted by address. 0 or
 * -ENOMEM. */
int dwarf_functions__find_inlined(Dwarf_Die *function, struct sought *sought, size_t n,
				  struct arena *arena, struct dwarf_budget *budget);

/* The end of the code that @start is in, 0 where there is none. */
__u64 code_ranges__limit(const struct code_ranges *code, __u64 start);

#endif
