// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Rules for C libraries without call frame information, and programs that they are linked into: musl is compiled
 * without it. The functions that the symbol tables name get rules from their instructions. Of those without a name, code
 * that ends the thread or the process with what the called function returned is an outermost frame.
 */
#include "cfi_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"

/* Size limit of a function whose instructions are all decoded, and limit of functions. */
#define MAX_FUNCTION_BYTES (1 << 20)
#define MAX_FUNCTIONS	   (1 << 20)

struct functions {
	struct cfi_fde *fdes; /* program_size is 0, or OUTERMOST */
	size_t n, room;
};

#define OUTERMOST 1

static int add(struct functions *functions, __u64 lo, __u64 hi, __u32 kind)
{
	if (array__reserve(&functions->fdes, &functions->room, functions->n + 1,
			   sizeof(*functions->fdes)))
		return -ENOMEM;
	functions->fdes[functions->n++] =
		(struct cfi_fde){ .lo = lo, .hi = hi, .program_size = kind };
	return 0;
}

/* Whether the file needs no other: such a C library is its own dynamic linker. */
static bool is_alone(const struct cfi_file *file)
{
	bool is_read = false;
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		Elf_Data *dynamic;
		GElf_Phdr phdr;
		GElf_Dyn entry;

		if (!gelf_getphdr(file->elf, (int)i, &phdr) || phdr.p_type == PT_INTERP)
			return false;
		if (phdr.p_type != PT_DYNAMIC || is_read || phdr.p_offset > file->size ||
		    phdr.p_filesz > file->size - phdr.p_offset)
			continue;
		is_read = true;
		dynamic = elf_getdata_rawchunk(file->elf, (int64_t)phdr.p_offset, phdr.p_filesz,
					       ELF_T_DYN);
		for (int at = 0; dynamic && gelf_getdyn(dynamic, at, &entry); at++)
			if (entry.d_tag == DT_NEEDED)
				return false;
	}
	return true;
}

static bool is_text(const struct cfi_file *file, __u64 lo, __u64 size)
{
	for (__u32 i = 0; i < file->text_count; i++)
		if (lo - file->texts[i].vaddr < file->texts[i].size)
			return size <= file->texts[i].size - (lo - file->texts[i].vaddr);
	return false;
}

static int take_symbol(struct cfi_file *file, const GElf_Sym *symbol, const char *name,
		       struct functions *functions)
{
	GElf_Ehdr ehdr;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || !name)
		return 0;
	if ((!strcmp(name, "exit") || !strcmp(name, "pthread_exit")) &&
	    file->bare.n_ends < CFI_BARE_ENDS)
		file->bare.ends[file->bare.n_ends++] = symbol->st_value;
	if (!symbol->st_size || symbol->st_size > MAX_FUNCTION_BYTES ||
	    functions->n == MAX_FUNCTIONS || !gelf_getehdr(file->elf, &ehdr) ||
	    !is_text(file, symbol->st_value, symbol->st_size) ||
	    /* There is no return address at the entry point. */
	    ehdr.e_entry - symbol->st_value < symbol->st_size)
		return 0;
	return add(functions, symbol->st_value, symbol->st_value + symbol->st_size, 0);
}

static int read_symbols(struct cfi_file *file, Elf_Scn *section, const GElf_Shdr *header,
			struct functions *functions)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;
	int err = 0;

	for (int i = 1; data && !err && gelf_getsym(data, i, &symbol); i++)
		err = take_symbol(file, &symbol,
				  elf_strptr(file->elf, header->sh_link, symbol.st_name),
				  functions);
	return err;
}

static int compare_fdes(const void *left, const void *right)
{
	const struct cfi_fde *a = left, *b = right;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return (a->hi < b->hi) - (a->hi > b->hi);
}

/* Sorts the functions, and drops aliases and what overlaps. */
static void separate(struct functions *functions)
{
	size_t kept = 0;

	if (functions->n)
		qsort(functions->fdes, functions->n, sizeof(*functions->fdes), compare_fdes);
	for (size_t i = 0; i < functions->n; i++)
		if (!kept || functions->fdes[kept - 1].hi <= functions->fdes[i].lo)
			functions->fdes[kept++] = functions->fdes[i];
	functions->n = kept;
}

/* Adds the addresses that calls in @text return to in outermost frames. */
static int find_outermost(struct cfi_file *file, const struct cfi_text *text,
			  struct functions *functions)
{
	Elf_Data *data =
		elf_getdata_rawchunk(file->elf, (int64_t)text->file_offset, text->size, ELF_T_BYTE);
	int err = 0;

	if (!data || !data->d_buf || data->d_size != text->size)
		return 0;
	for (size_t at = 1; at < text->size && !err; at++)
		if (file->arch->ends_thread(data->d_buf, text->size, at, text->vaddr, &file->bare))
			err = add(functions, text->vaddr + at - 1, text->vaddr + at, OUTERMOST);
	return err;
}

int cfi_bare__find(struct cfi_file *file)
{
	_cleanup_(free_ptr) struct cfi_fde *fdes = NULL;
	bool has_table[SHT_DYNSYM + 1] = { false };
	struct functions functions = { 0 };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int err = 0;

	if (!file->arch->ends_thread || !is_alone(file))
		return 0;
	while (!err && (section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
		    has_table[header.sh_type])
			continue;
		has_table[header.sh_type] = true;
		err = read_symbols(file, section, &header, &functions);
	}
	/* All functions have names: one that has none is not the C library's. */
	if (has_table[SHT_SYMTAB])
		file->bare.n_ends = 0;
	separate(&functions);
	for (__u32 i = 0; i < file->text_count && !err && functions.n; i++)
		err = find_outermost(file, &file->texts[i], &functions);
	/* A named function comes before an outermost frame in it. */
	separate(&functions);
	fdes = functions.fdes;
	if (err || !functions.n)
		return err;
	file->bare.fdes = fdes;
	fdes = NULL;
	file->bare.n = (__u32)functions.n;
	file->sections[file->section_count++] = (struct cfi_section){ .bare = &file->bare };
	return 0;
}

int cfi_bare__entries(const struct cfi_bare *bare, struct cfi_entries *out)
{
	struct cfi_entries entries = { .cie_count = 1, .fde_count = bare->n };

	entries.cies = calloc(1, sizeof(*entries.cies));
	entries.fdes = calloc(bare->n, sizeof(*entries.fdes));
	if (!entries.cies || !entries.fdes) {
		cfi_entries__free(&entries);
		return -ENOMEM;
	}
	memcpy(entries.fdes, bare->fdes, bare->n * sizeof(*entries.fdes));
	*out = entries;
	return 0;
}

int cfi_bare__run(const struct cfi_bare *bare, const struct cfi_fde *fde, cfi_rule_fn take,
		  void *ctx)
{
	static const struct unwind_rule none = { 0 }, outermost = { .cfa = UNWIND_CFA_SP,
								    .cfa_offset = 8,
								    .ra_where = UNWIND_UNDEFINED,
								    .flags = UNWIND_OF_CODE };
	const __u8 *code;

	if (fde->program_size == OUTERMOST)
		return take(ctx, fde->lo, &outermost);
	code = bare->code(bare->file, fde->lo, fde->hi - fde->lo);
	return code ? cfi_code__run(fde->lo, code, fde->hi - fde->lo, take, ctx)
		    : take(ctx, fde->lo, &none);
}
