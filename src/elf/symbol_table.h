/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions from ELF symbol tables, also compressed ones, as address ranges that do not overlap. */
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

/* NULL on ENOMEM. */
struct symbol_table *symbol_table__new(void);
void symbol_table__free(struct symbol_table *table);

/* Adds the symbol if it is code; @bias is subtracted from its address. @elf, which has its section
 * and @name, must outlive the table. 0 or -ENOMEM. */
int symbol_table__add(struct symbol_table *table, Elf *elf, const GElf_Sym *symbol,
		      GElf_Word section, const char *name, __u64 bias);

/* Adds the symbols of the section of @type (SHT_SYMTAB or SHT_DYNSYM); *@found: whether there is
 * one. Skips damaged entries. 0 or -ENOMEM. */
int symbol_table__add_section(struct symbol_table *table, Elf *elf, GElf_Word type, bool *found);

/* Adds a function at [@start, @end) that has no ELF symbol. 0 or -ENOMEM. */
int symbol_table__add_function(struct symbol_table *table, __u64 start, __u64 end,
			       struct symbol_name name);

/* Call once, after everything is added and before lookups. 0 or -ENOMEM. */
int symbol_table__finish(struct symbol_table *table);

/*
 * The symbol of @address. Symbols overlap: aliases, labels inside of functions, cold parts. The
 * sized symbol with the greatest start wins, else one without size. Among aliases, global ones come
 * before local ones, then those with fewer underscores.
 */
struct symbol_name symbol_table__find(const struct symbol_table *table, __u64 address);

/*
 * The common name of the function at @address that DWARF calls @known: `malloc` for
 * `__libc_malloc`. @known itself (text NULL) if no symbol begins there, if no other name is better,
 * or if the symbol is a clone of @known, such as `foo.part.0`.
 */
struct symbol_name symbol_table__entry(const struct symbol_table *table, __u64 address,
				       const char *known);

/* .gnu_debugdata: the compressed symbol table that some distributions keep in stripped files. */

/* Adds the symbols of @file's .gnu_debugdata to @table, which must not outlive *@out. *@out is NULL
 * if there is no such section, or if it is damaged or too large. 0 or -ENOMEM. */
int mini_debug__add(const struct debug_file *file, struct symbol_table *table,
		    struct mini_debug **out);
void mini_debug__free(struct mini_debug *mini);

/* The unpacked size of an .xz file, from the headers of all chunks, which the decoder enforces.
 * False if it is damaged or of an unusual kind. */
bool mini_debug__unpacked_size(const unsigned char *bytes, size_t size, __u64 *unpacked);

#endif
