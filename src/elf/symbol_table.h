/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns the functions of ELF symbol tables, also compressed ones, into address ranges that do not
 * overlap. */
#ifndef ALLOCPROF_SYMBOL_TABLE_H
#define ALLOCPROF_SYMBOL_TABLE_H

#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct debug_file;
struct mini_debug;
struct symbol_table;

/* A name as in the file, not NUL-terminated. */
struct symbol_name {
	const char *text; /* borrowed from the Elf; NULL: none */
	size_t size;	  /* without the version */
};

/* Returns NULL if there is no memory. */
struct symbol_table *symbol_table__new(void);
void symbol_table__free(struct symbol_table *table);

/* Adds the symbols of the section of @type (SHT_SYMTAB or SHT_DYNSYM); *@found: whether there is
 * one. Skips damaged entries. Returns 0 or -ENOMEM. */
int symbol_table__add_section(struct symbol_table *table, Elf *elf, GElf_Word type, bool *found);

/* Adds a function at [@start, @end) that has no ELF symbol. Returns 0 or -ENOMEM. */
int symbol_table__add_function(struct symbol_table *table, __u64 start, __u64 end,
			       struct symbol_name name);

/* To be called once, after everything was added and before look-ups. Returns 0 or -ENOMEM. */
int symbol_table__finish(struct symbol_table *table);

/*
 * Returns the symbol of @address. Symbols overlap: aliases, labels inside of functions, cold
 * parts. The sized symbol with the greatest start is taken, else one without size. Of aliases
 * global ones come before local ones, then those with fewer underscores.
 */
struct symbol_name symbol_table__find(const struct symbol_table *table, __u64 address);

/*
 * Returns the common name of the function at @address that DWARF calls @known: `malloc` for
 * `__libc_malloc`. Returns @known itself (text NULL) if no symbol begins there, no other name is
 * better, or the symbol is a clone of @known, such as `foo.part.0`.
 */
struct symbol_name symbol_table__entry(const struct symbol_table *table, __u64 address,
				       const char *known);

/* .gnu_debugdata: the compressed symbol table that some distributions keep in stripped files. */

/* Adds the symbols of @file's .gnu_debugdata to @table, which must not outlive *@out. *@out is
 * NULL if there is no such section, or if it is damaged or too large. Returns 0 or -ENOMEM. */
int mini_debug__add(const struct debug_file *file, struct symbol_table *table,
		    struct mini_debug **out);
void mini_debug__free(struct mini_debug *mini);

/* Stores the unpacked size of an .xz file, from the headers of all chunks, which the decoder
 * enforces. Returns false if the file is damaged or of an unusual kind. */
bool mini_debug__unpacked_size(const unsigned char *bytes, size_t size, __u64 *unpacked);

#endif
