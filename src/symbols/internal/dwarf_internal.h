/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads DWARF: functions, inlined functions, files and lines of addresses. */
#ifndef ALLOCPROF_DWARF_INTERNAL_H
#define ALLOCPROF_DWARF_INTERNAL_H

#include <elfutils/libdw.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "dwarf_cursor.h"
#include "hash_table.h"

struct arena;
struct debug_file;
struct debug_search;
struct dwarf_budget;
struct error;
struct symbol_table;

/* Looks up functions, inlined functions, files and lines of addresses in DWARF. */

/* How many lines an address has at most: one of the function itself, and those of inlined
 * functions, of which the innermost are dropped first. */
#define MAX_ADDRESS_LINES 257

struct address_line {
	const char *symbol; /* linker name, or a qualified name; NULL: unknown */
	const char *file;   /* NULL: unknown */
	__u32 line;	    /* 0: unknown */
	bool inlined;
};

/* An ELF virtual address and its lines. */
struct address {
	__u64 vaddr;
	struct address_line *lines; /* innermost first; only the last is not inlined */
	__u32 n_lines;		    /* 0: unknown */
};

struct dwarf_addresses_input {
	const struct debug_file *file; /* the file with the DWARF */
	const struct debug_file *alt;  /* its dwz file, or NULL */
	const struct symbol_table *table;
	struct arena *arena; /* memory for the lines */
	/* If not NULL, called from time to time with the number of further addresses done. */
	void (*progress)(size_t n_done);
};

/* End of a sentence about a file whose debug information is incomplete or cannot be unpacked. */
#define DWARF_LACKS_LINES "inlined functions and source lines may be missing"

/*
 * Fills the lines of @n @addresses, which are sorted by address and unique, as far as the DWARF
 * has them. Functions are named by symbol_table__entry() of their first address. Returns 0, with
 * @error set if some of the DWARF is damaged; -ENOEXEC if none of it can be read; or -ENOMEM.
 */
int dwarf_addresses__find(const struct dwarf_addresses_input *input, struct address *addresses,
			  size_t n, struct error *error);

/* Declarations for dwarf_addresses.c and dwarf_units.c. */

/* A function inlined at an address. */
struct inlined_level {
	struct inlined_level *outer; /* the function around it; NULL: the concrete function */
	Dwarf_Die die;
};

/* A query during the search. */
struct query {
	struct address *address;
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

/* Sections with code. DWARF of functions that the linker has dropped refers to addresses outside
 * of them. */
struct code_ranges {
	struct code_range *ranges;
	size_t n;
};

/* Reads the sections; a file without section headers has none. Returns 0 or -ENOMEM. */
int code_ranges__read(struct code_ranges *code, Elf *elf);

/* Returns the index of the first of @n queries, which are sorted by address, that is not below
 * @vaddr. */
size_t query__first(const struct query *query, size_t n, __u64 vaddr);

/* Sets the unit of each query by the units' ranges. Units without ranges are listed in *@bare,
 * which the caller frees. Returns 0, -ENOEXEC if something was damaged, -ENOMEM. */
int dwarf_units__assign(Dwarf *dwarf, const struct code_ranges *code, struct query *query, size_t n,
			struct dwarf_budget *budget, Dwarf_Off **bare, size_t *n_bare);

/* Returns the end of the code section that contains @start; 0 if there is none. */
__u64 code_ranges__limit(const struct code_ranges *code, __u64 start);

/* Names of functions in DWARF. */

/* How many DIEs may still be read, which limits the work for hostile files. */
struct dwarf_budget {
	__u64 dies;
};

/* Cached names; valid as long as the Dwarf is open. */
struct dwarf_names {
	struct arena *arena;
	struct dwarf_budget *budget;
	struct hash_table index;
	struct known_name *known;
	size_t n_known, room;
};

void dwarf_names__release(struct dwarf_names *names);

/* Returns the name of a function's DIE, concrete, inlined or abstract: its linkage name, else its
 * name, qualified by scopes if the language has them. "" if it has none, NULL if there is no
 * memory. The name is in the arena. */
const char *dwarf_names__symbol(struct dwarf_names *names, Dwarf_Die *die);

/* Go to a DIE's first child and to its sibling; never backwards, whatever the file says. Return
 * false at the end, on errors, and when the budget is used up. */
bool dwarf_die__child(Dwarf_Die *die, Dwarf_Die *child, struct dwarf_budget *budget);
bool dwarf_die__next(Dwarf_Die *die, struct dwarf_budget *budget);

/* Checks what libdw trusts, before libdw reads it. */

enum dwarf_kind {
	DWARF_ABBREVIATIONS, /* .debug_abbrev */
	DWARF_STRINGS,	     /* .debug_str */
	DWARF_LINE_STRINGS,  /* .debug_line_str */
	DWARF_LINES,	     /* .debug_line */
	DWARF_KINDS
};

/* Data of the sections of a file, borrowed from its Elf; NULL: none. */
struct dwarf_sections {
	const Elf_Data *data[DWARF_KINDS];
};

/*
 * Returns whether the file has at most one section of each kind, all strings end in theirs, and no
 * abbreviation is longer than any compiler's. For ELF files whose sections libdw has unpacked.
 */
bool dwarf_sound__check(Elf *elf, struct dwarf_sections *sections);

/* Returns the string attribute @name, which ends in its section; NULL if @die has none. */
const char *dwarf_sound__string(Dwarf_Die *die, unsigned int name);

/* Returns false if @die has a string attribute @name that does not end in its section. */
bool dwarf_sound__may_read(Dwarf_Die *die, unsigned int name);

/*
 * Returns whether the header of the line table at @offset ends in its section, and all of its strings in theirs. Sets *@size_bytes to
 * the table's size.
 */
bool dwarf_lines__are_sound(const struct dwarf_sections *sections, __u64 offset, __u64 *size_bytes);

#endif
