/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks up functions, inlined functions, files and lines of addresses in DWARF. */
#ifndef ALLOCPROF_DWARF_PLACES_H
#define ALLOCPROF_DWARF_PLACES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct debug_file;
struct debug_search;
struct error;
struct symbol_table;

/* An address has at most so many lines: those of inlined functions, of which the innermost are dropped first, and one of
 * the function itself. */
#define MAX_PLACE_LINES 257

struct place_line {
	const char *symbol; /* as linked, or a qualified name; NULL: unknown */
	const char *file;   /* NULL: unknown */
	__u32 line;	    /* 0: unknown */
	bool inlined;
};

/* An ELF virtual address and its lines. */
struct place {
	__u64 vaddr;
	struct place_line *lines; /* innermost first; only the last is not inlined */
	__u32 n_lines;		  /* 0: unknown */
};

struct dwarf_places_input {
	const struct debug_file *file; /* the file with the DWARF */
	const struct debug_file *alt;  /* its dwz file, or NULL */
	const struct symbol_table *table;
	struct arena *arena; /* memory for the lines */
	/* Called from time to time with the number of further addresses done; or NULL. */
	void (*progress)(size_t n_done);
};

/* The end of a sentence on a file whose debug information is there in part, or cannot be unpacked. */
#define DWARF_LACKS_LINES "inlined functions and source lines may be missing"

/*
 * Fills the lines of @n @places, sorted by address and unique, as far as the DWARF has them.
 * Functions are named by symbol_table__entry() of their first address. 0, with @error set if some
 * of the DWARF is damaged; -ENOEXEC if none of it can be read; -ENOMEM.
 */
int dwarf_places__find(const struct dwarf_places_input *input, struct place *places, size_t n,
		       struct error *error);

#endif
