/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions that ELF symbol tables name, as ranges of addresses that do not overlap. */
#ifndef ALLOCPROF_SYMBOL_TABLE_H
#define ALLOCPROF_SYMBOL_TABLE_H

#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct symbol_table;

/* A name as the file has it, so not ended by its size. */
struct symbol_name {
	const char *text; /* borrowed from the Elf; NULL: none */
	size_t size;	  /* bytes, without a version */
};

/* NULL without memory. */
struct symbol_table *symbol_table__new(void);
void symbol_table__free(struct symbol_table *table);

/* Takes the symbol if it is of code; addresses are less @bias than it says. @elf, which has its
 * section and @name, is to outlive the table. 0 or -ENOMEM. */
int symbol_table__add(struct symbol_table *table, Elf *elf, const GElf_Sym *symbol,
		      GElf_Word section, const char *name, __u64 bias);

/* Takes what the section of type @type (SHT_SYMTAB or SHT_DYNSYM) has; *@found says whether there
 * is such a section. 0 or -ENOMEM; what is damaged is left out. */
int symbol_table__add_section(struct symbol_table *table, Elf *elf, GElf_Word type, bool *found);

/* Takes a function at [@start, @end) that no ELF symbol is for. 0 or -ENOMEM. */
int symbol_table__add_function(struct symbol_table *table, __u64 start, __u64 end,
			       struct symbol_name name);

/* To be called once, after all was added and before anything is looked up. 0 or -ENOMEM. */
int symbol_table__finish(struct symbol_table *table);

/*
 * The symbol that @address belongs to. Symbols overlap: aliases, labels inside functions, cold
 * parts. A place belongs to the one with a size that starts last before it, else to one without.
 * Of several names for the same, public ones come before local ones, then fewer underscores.
 */
struct symbol_name symbol_table__find(const struct symbol_table *table, __u64 address);

/*
 * The name that people know the function at @address by, which the debug information calls @known:
 * `malloc` where that has `__libc_malloc`. @known itself (text NULL) where no symbol begins there,
 * where @known is as good as any, and where the symbol is a clone of @known, as `foo.part.0` of
 * `foo`.
 */
struct symbol_name symbol_table__entry(const struct symbol_table *table, __u64 address,
				       const char *known);

#endif
