/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions, files and lines of places in code, with those inlined there, from DWARF. */
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

struct place_line {
	const char *symbol; /* as linked, or a qualified name; NULL: unknown */
	const char *file;   /* NULL: unknown */
	__u32 line;	    /* 0: unknown */
	bool inlined;
};

/* An ELF virtual address and what was found there. */
struct place {
	__u64 vaddr;
	struct place_line *lines; /* innermost first; only the last is not inlined */
	__u32 n_lines;		  /* 0: nothing is known */
};

struct dwarf_places_input {
	const struct debug_file *file; /* that has the DWARF */
	const struct debug_file *alt;  /* that its common parts are in, NULL: it has none */
	const struct symbol_table *table;
	struct arena *arena; /* what the lines point to */
	/* Told now and then how many places more are done; NULL: nobody wants to know. */
	void (*progress)(void *context, size_t n_done);
	void *context;
};

/*
 * Fills the lines of those of the @n @places, sorted by address and each there once, that the DWARF
 * tells of. A function's name is that of symbol_table__entry() where its machine code begins. 0 also
 * where some of the DWARF is damaged, and @error then says so; -ENOEXEC where nothing of it can be
 * read; -ENOMEM.
 */
int dwarf_places__find(const struct dwarf_places_input *input, struct place *places, size_t n,
		       struct error *error);

#endif
