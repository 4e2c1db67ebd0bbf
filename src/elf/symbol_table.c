// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* [start, start of the next range) belongs to @name; NULL text: to no symbol. */
struct range {
	__u64 start;
	struct symbol_name name;
};

struct symbol {
	__u64 start, end; /* end == start: size unknown */
	__u64 limit;	  /* end of its section */
	int rank;	  /* among names of one address the lowest wins */
	struct symbol_name name;
};

struct symbol_table {
	struct symbol *symbols;
	size_t n_symbols, room;
	struct range *ranges;
	size_t n_ranges;
};

struct symbol_table *symbol_table__new(void)
{
	return calloc(1, sizeof(struct symbol_table));
}

void symbol_table__free(struct symbol_table *table)
{
	if (!table)
		return;
	free(table->symbols);
	free(table->ranges);
	free(table);
}

/* Longer names are cut off: a hostile table can have a million that are megabytes long, and share these. */
#define MAX_NAME_SIZE 8192

static int name_rank(const GElf_Sym *symbol, const char *name)
{
	int binding = GELF_ST_BIND(symbol->st_info);
	int underscores = 0;

	while (underscores < 100 && name[underscores] == '_')
		underscores++;
	return (binding == STB_LOCAL ? 1000 : 0) +
	       (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ? 500 : 0) + underscores;
}

/* .symtab has versions in names: memcpy@@GLIBC_2.14. */
static size_t bare_size(const char *name)
{
	size_t size = strnlen(name, MAX_NAME_SIZE);
	const char *version = memchr(name + 1, '@', size - 1);

	return version ? (size_t)(version - name) : size;
}

int symbol_table__add(struct symbol_table *table, Elf *elf, const GElf_Sym *symbol,
		      GElf_Word section, const char *name, __u64 bias)
{
	int type = GELF_ST_TYPE(symbol->st_info);
	GElf_Shdr header;
	struct symbol *to;

	if (!name || !*name || section == SHN_UNDEF || section == SHN_ABS)
		return 0;
	/* '$' begins the mapping symbols of ARM and RISC-V, and the functions of Swift. */
	if (type == STT_NOTYPE && *name == '$')
		return 0;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (!gelf_getshdr(elf_getscn(elf, section), &header) ||
	    !(header.sh_flags & SHF_EXECINSTR) || symbol->st_value < header.sh_addr ||
	    symbol->st_value - header.sh_addr >= header.sh_size)
		return 0;
	if (array__reserve(&table->symbols, &table->room, table->n_symbols + 1,
			   sizeof(*table->symbols)))
		return -ENOMEM;
	to = &table->symbols[table->n_symbols];
	to->start = symbol->st_value - bias;
	to->limit = to->start + (header.sh_size - (symbol->st_value - header.sh_addr));
	if (to->limit < to->start)
		return 0;
	to->end = symbol->st_size > to->limit - to->start ? to->limit : to->start + symbol->st_size;
	to->rank = name_rank(symbol, name);
	to->name = (struct symbol_name){ name, bare_size(name) };
	table->n_symbols++;
	return 0;
}

int symbol_table__add_function(struct symbol_table *table, __u64 start, __u64 end,
			       struct symbol_name name)
{
	if (start >= end || !name.size)
		return 0;
	if (array__reserve(&table->symbols, &table->room, table->n_symbols + 1,
			   sizeof(*table->symbols)))
		return -ENOMEM;
	table->symbols[table->n_symbols++] =
		(struct symbol){ .start = start, .end = end, .limit = end, .name = name };
	return 0;
}

static Elf_Scn *find_section(Elf *elf, GElf_Word type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type)
			return section;
	return NULL;
}

/* SHT_SYMTAB_SHNDX of @of_section. */
static Elf_Data *find_indices(Elf *elf, size_t of_section)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB_SHNDX &&
		    header.sh_link == of_section)
			return elf_getdata(section, NULL);
	return NULL;
}

int symbol_table__add_section(struct symbol_table *table, Elf *elf, GElf_Word type, bool *found)
{
	size_t entry_size = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT), n;
	Elf_Data *data, *indices;
	GElf_Shdr header;
	Elf_Scn *section = find_section(elf, type, &header);
	int err = 0;

	*found = false;
	data = section && entry_size ? elf_getdata(section, NULL) : NULL;
	if (!data || !data->d_buf)
		return 0;
	*found = true;
	indices = find_indices(elf, elf_ndxscn(section));
	n = data->d_size / entry_size;
	for (size_t i = 1; i < n && i < INT32_MAX && !err; i++) {
		GElf_Word extended = 0;
		GElf_Sym symbol;

		if (!gelf_getsymshndx(data, indices, i, &symbol, &extended))
			continue;
		if (symbol.st_shndx != SHN_XINDEX)
			extended = symbol.st_shndx;
		err = symbol_table__add(table, elf, &symbol, extended,
					elf_strptr(elf, header.sh_link, symbol.st_name), 0);
	}
	return err;
}

static int compare_names(const struct symbol_name *a, const struct symbol_name *b)
{
	int order = 0;

	if (a->text != b->text)
		order = strncmp(a->text, b->text, a->size < b->size ? a->size : b->size);

	return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* By start; at the same address outer symbols come first, and the preferred name last. */
static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if ((a->end == a->start) != (b->end == b->start))
		return a->end == a->start ? 1 : -1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	return -compare_names(&a->name, &b->name);
}

static void add_range(struct symbol_table *table, __u64 start, struct symbol_name name)
{
	if (table->n_ranges && table->ranges[table->n_ranges - 1].start == start)
		table->n_ranges--;
	table->ranges[table->n_ranges++] = (struct range){ start, name };
}

/* Closes the open symbols that end by @until; the enclosing symbol continues. */
static void close_ranges(struct symbol_table *table, const struct symbol **open, size_t *n_open,
			 __u64 until)
{
	static const struct symbol_name none;

	while (*n_open && open[*n_open - 1]->end <= until) {
		__u64 end = open[--*n_open]->end;

		while (*n_open && open[*n_open - 1]->end <= end)
			--*n_open;
		add_range(table, end, *n_open ? open[*n_open - 1]->name : none);
	}
}

/* Takes the last symbol at the address of symbol @at, which has no size, and extends it up to the
 * next symbol or the section's end. Returns its index. */
static size_t stretch(struct symbol_table *table, size_t at)
{
	size_t follower = at + 1;
	struct symbol *symbol;

	while (follower < table->n_symbols &&
	       table->symbols[follower].start == table->symbols[at].start)
		follower++;
	symbol = &table->symbols[follower - 1];
	symbol->end = symbol->limit;
	if (follower < table->n_symbols && table->symbols[follower].start < symbol->end)
		symbol->end = table->symbols[follower].start;
	return follower - 1;
}

int symbol_table__finish(struct symbol_table *table)
{
	const struct symbol **open;
	size_t n_open = 0;

	if (!table->n_symbols)
		return 0;
	qsort(table->symbols, table->n_symbols, sizeof(*table->symbols), compare_symbols);
	open = calloc(table->n_symbols + 1, sizeof(*open));
	table->ranges = calloc(2 * table->n_symbols + 1, sizeof(*table->ranges));
	if (!open || !table->ranges) {
		free(open);
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->n_symbols; i++) {
		close_ranges(table, open, &n_open, table->symbols[i].start);
		if (table->symbols[i].end == table->symbols[i].start) {
			if (n_open)
				continue;
			i = stretch(table, i);
		}
		open[n_open++] = &table->symbols[i];
		add_range(table, table->symbols[i].start, table->symbols[i].name);
	}
	close_ranges(table, open, &n_open, UINT64_MAX);
	free(open);
	return 0;
}

struct symbol_name symbol_table__find(const struct symbol_table *table, __u64 address)
{
	size_t low = ARRAY_LOWER_BOUND(table->n_ranges, i, table->ranges[i].start <= address);

	return low ? table->ranges[low - 1].name : (struct symbol_name){ 0 };
}

static size_t first_at(const struct symbol_table *table, __u64 address)
{
	return ARRAY_LOWER_BOUND(table->n_symbols, i, table->symbols[i].start < address);
}

struct symbol_name symbol_table__entry(const struct symbol_table *table, __u64 address,
				       const char *known)
{
	size_t known_size = strlen(known);
	const struct symbol *best = NULL, *same = NULL;

	for (size_t i = first_at(table, address);
	     i < table->n_symbols && table->symbols[i].start == address; i++) {
		const struct symbol *symbol = &table->symbols[i];

		if (!best || symbol->rank <= best->rank)
			best = symbol;
		if (symbol->name.size >= known_size &&
		    !memcmp(symbol->name.text, known, known_size) &&
		    (symbol->name.size == known_size || symbol->name.text[known_size] == '.') &&
		    (!same || symbol->rank < same->rank))
			same = symbol;
	}
	if (!best || (same && same->rank <= best->rank))
		return (struct symbol_name){ 0 };
	return best->name;
}
