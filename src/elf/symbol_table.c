// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_table.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "debug_file.h"
#include "file.h"

/* Addresses from @start up to the start of the next range belong to @name; NULL text: to no
 * symbol. */
struct range {
	__u64 start;
	struct symbol_name name;
};

struct symbol {
	__u64 start, end; /* end == start: size unknown */
	__u64 limit;	  /* end of its section */
	int rank;	  /* the name with the lowest rank is used for an address */
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

/* Longer names are truncated: a hostile table may have a million that share megabytes. */
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

/* Returns the size of the name without its version; .symtab has names like memcpy@@GLIBC_2.14. */
static size_t bare_size(const char *name)
{
	size_t size = strnlen(name, MAX_NAME_SIZE);
	const char *version = memchr(name + 1, '@', size - 1);

	return version ? (size_t)(version - name) : size;
}

/* Adds the symbol if it is code. @bias is subtracted from its address. @elf, which has its section
 * and @name, must outlive the table. Returns 0 or -ENOMEM. */
static int symbol_table__add(struct symbol_table *table, Elf *elf, const GElf_Sym *symbol,
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

/* Returns the data of the section SHT_SYMTAB_SHNDX that belongs to the symbol table @of_section. */
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

/* Compares by start; at the same address outer symbols come first, and the preferred name last. */
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

/* Closes the open symbols that end by @until; then the enclosing symbol continues. */
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

/* Largest file whose .gnu_debugdata is read, since libdwfl reads the whole file. */
#define MAX_FILE_BYTES (1ULL << 30)

/* Largest unpacked size; Firefox's is 30 MiB. 100 MiB of .xz can unpack to half a terabyte. */
#define MAX_UNPACKED_BYTES (256ULL << 20)

#define XZ_HEADER_BYTES 12

struct mini_debug {
	Dwfl *dwfl;
	char *image;
};

/* Adds up the LZMA2 chunks of a block, and moves *@at past it (see liblzma's lzma2_decoder.c). */
static bool sum_chunks(const unsigned char *bytes, size_t size, size_t *at, __u64 *unpacked)
{
	while (*at < size) {
		const unsigned char *chunk = bytes + *at;
		size_t left = size - *at, packed;

		if (!chunk[0]) {
			++*at;
			return true;
		}
		if (chunk[0] >= 0x80) {
			if (left < 6)
				return false;
			*unpacked += ((chunk[0] & 0x1f) << 16 | chunk[1] << 8 | chunk[2]) + 1;
			packed = (chunk[3] << 8 | chunk[4]) + 1 + (chunk[0] >= 0xc0 ? 6 : 5);
		} else {
			if (chunk[0] > 2 || left < 3)
				return false;
			*unpacked += (chunk[1] << 8 | chunk[2]) + 1;
			packed = (chunk[1] << 8 | chunk[2]) + 1 + 3;
		}
		if (packed > left)
			return false;
		*at += packed;
	}
	return false;
}

bool mini_debug__unpacked_size(const unsigned char *bytes, size_t size, __u64 *unpacked)
{
	static const unsigned char magic[] = { 0xfd, '7', 'z', 'X', 'Z', 0, 0 };
	static const unsigned char check_bytes[16] = { 0,  4,  4,  4,  8,  8,  8,  16,
						       16, 16, 32, 32, 32, 64, 64, 64 };
	size_t at = XZ_HEADER_BYTES, check;
	__u64 sum = 0;

	if (size < XZ_HEADER_BYTES || memcmp(bytes, magic, sizeof(magic)) || bytes[7] > 15)
		return false;
	check = check_bytes[bytes[7]];
	/* A block header begins with its size; 0 begins the index. */
	while (at < size && bytes[at]) {
		size_t header = (bytes[at] + 1) * 4;

		if (header > size - at)
			return false;
		at += header;
		if (!sum_chunks(bytes, size, &at, &sum))
			return false;
		at = (at + 3) / 4 * 4 + check;
	}
	if (at >= size)
		return false;
	*unpacked = sum;
	return true;
}

static bool is_fit(Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_file__section(elf, ".gnu_debugdata", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	__u64 unpacked;

	return data && data->d_buf &&
	       mini_debug__unpacked_size(data->d_buf, data->d_size, &unpacked) &&
	       unpacked <= MAX_UNPACKED_BYTES;
}

static char *read_file(int fd, size_t *size)
{
	struct stat st;
	char *bytes;

	if (fstat(fd, &st) || st.st_size <= 0 || (__u64)st.st_size > MAX_FILE_BYTES)
		return NULL;
	bytes = malloc(st.st_size);
	if (!bytes)
		return NULL;
	if (fd__read_all_at(fd, bytes, st.st_size, 0)) {
		free(bytes);
		return NULL;
	}
	*size = st.st_size;
	return bytes;
}

static int find_nothing(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
			const char *path, const char *link, GElf_Word crc, char **debug_path)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.section_address = dwfl_offline_section_address,
	.find_debuginfo = find_nothing,
};

static int add_symbols(Dwfl_Module *module, Elf *main, GElf_Addr bias, struct symbol_table *table)
{
	int n = dwfl_module_getsymtab(module), err = 0;

	for (int i = 1; i < n && !err; i++) {
		GElf_Addr address;
		GElf_Word section;
		GElf_Sym symbol;
		Elf *elf = NULL;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &address, &section, &elf, NULL);

		/* dwfl also reports the file's own .dynsym, which is skipped. */
		if (!name || !elf || elf == main)
			continue;
		err = symbol_table__add(table, elf, &symbol, section, name, 0);
	}
	return err;
}

int mini_debug__add(const struct debug_file *file, struct symbol_table *table,
		    struct mini_debug **out)
{
	struct mini_debug *mini;
	Dwfl_Module *module = NULL;
	GElf_Addr bias = 0;
	Elf *elf = NULL;
	size_t size = 0;
	int err = 0;

	*out = NULL;
	if (!is_fit(file->elf))
		return 0;
	mini = calloc(1, sizeof(*mini));
	if (!mini)
		return -ENOMEM;
	mini->image = read_file(file->fd, &size);
	mini->dwfl = mini->image ? dwfl_begin(&callbacks) : NULL;
	if (mini->dwfl) {
		dwfl_report_begin(mini->dwfl);
		module = dwfl_report_offline_memory(mini->dwfl, file->path, file->path, mini->image,
						    size);
		dwfl_report_end(mini->dwfl, NULL, NULL);
	}
	if (module)
		elf = dwfl_module_getelf(module, &bias);
	if (elf)
		err = add_symbols(module, elf, bias, table);
	if (err || !elf) {
		mini_debug__free(mini);
		return err;
	}
	*out = mini;
	return 0;
}

void mini_debug__free(struct mini_debug *mini)
{
	if (!mini)
		return;
	if (mini->dwfl)
		dwfl_end(mini->dwfl);
	free(mini->image);
	free(mini);
}
