// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes rules for code without call frame information: Go's, and the ends of a C library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cfi_internal.h"
#include "cleanup.h"

/*
 * Makes rules for C libraries without call frame information, and for programs into which they are
 * linked: musl is compiled without it. Functions with a name in the symbol tables get rules from
 * their instructions. Of code without a name, code that ends the thread or the process with the
 * result of the called function is an outermost frame.
 */

/* Size limit of a function whose instructions are all decoded, and limit of functions. */
#define MAX_FUNCTION_BYTES (1 << 20)
#define MAX_FUNCTIONS	   (1 << 20)

struct functions {
	struct cfi_fde *fdes; /* program_size is 0, OUTERMOST or SIGNAL_RETURN */
	size_t n, room;
};

#define OUTERMOST     1
#define SIGNAL_RETURN 2

static int add(struct functions *functions, __u64 lo, __u64 hi, __u32 kind)
{
	if (array__reserve(&functions->fdes, &functions->room, functions->n + 1,
			   sizeof(*functions->fdes)))
		return -ENOMEM;
	functions->fdes[functions->n++] =
		(struct cfi_fde){ .lo = lo, .hi = hi, .program_size = kind };
	return 0;
}

/* Returns whether the file needs no other file: such a C library is its own dynamic linker. */
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
	    /* At the entry point there is no return address. */
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

/* Sorts the functions, and drops aliases and overlapping ones. */
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

/* Adds the addresses in outermost frames to which calls in @text return. */
static int find_outermost(struct cfi_file *file, const struct cfi_text *text,
			  struct functions *functions)
{
	Elf_Data *data =
		elf_getdata_rawchunk(file->elf, (int64_t)text->file_offset, text->size, ELF_T_BYTE);
	int err = 0;

	if (!data || !data->d_buf || data->d_size != text->size)
		return 0;
	for (size_t at = 1; at < text->size && !err; at++)
		if (file->code_arch->ends_thread(data->d_buf, text->size, at, text->vaddr,
						 &file->bare))
			err = add(functions, text->vaddr + at - 1, text->vaddr + at, OUTERMOST);
	return err;
}

/* Adds the code in @text to which signal handlers return. */
static int find_signal_return(struct cfi_file *file, const struct cfi_text *text,
			      struct functions *functions)
{
	const struct cfi_code_arch *arch = file->code_arch;
	const __u8 *code =
		arch->signal_return ? file->bare.code(file, text->vaddr, text->size) : NULL;
	const __u8 *found =
		code ? memmem(code, text->size, arch->signal_return, arch->signal_return_bytes)
		     : NULL;
	__u64 vaddr;

	if (!found || found == code)
		return 0;
	vaddr = text->vaddr + (__u64)(found - code);
	return add(functions, vaddr - 1, vaddr + arch->signal_return_bytes, SIGNAL_RETURN);
}

int cfi_bare__find(struct cfi_file *file)
{
	_cleanup_(free_ptr) struct cfi_fde *fdes = NULL;
	bool has_table[SHT_DYNSYM + 1] = { false };
	struct functions functions = { 0 };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int err = 0;

	if (!is_alone(file))
		return 0;
	while (!err && (section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
		    has_table[header.sh_type])
			continue;
		has_table[header.sh_type] = true;
		err = read_symbols(file, section, &header, &functions);
	}
	/* In the C library all functions have names, so code without one belongs to something
	 * else. */
	if (has_table[SHT_SYMTAB])
		file->bare.n_ends = 0;
	separate(&functions);
	for (__u32 i = 0; i < file->text_count && !err && functions.n; i++)
		err = find_signal_return(file, &file->texts[i], &functions)
			      ?: find_outermost(file, &file->texts[i], &functions);
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
	if (fde->program_size == SIGNAL_RETURN)
		return take(ctx, fde->lo, &cfi_code_host.signal_rule);
	code = bare->code(bare->file, fde->lo, fde->hi - fde->lo);
	return code ? cfi_code__run(fde->lo, code, fde->hi - fde->lo, take, ctx)
		    : take(ctx, fde->lo, &none);
}

/*
 * Makes rules for Go code. Go's compiler writes no .eh_frame, and .debug_frame only with debug
 * information, but always the table by which its own runtime unwinds. That table does not describe
 * where the runtime switches stacks; rules for these addresses are derived from the machine code.
 */

/* Size limit of a C function whose instructions are all decoded. */
#define MAX_FOREIGN_BYTES (1 << 20)

static bool is_in_text(const struct cfi_text *texts, __u32 count,
		       const struct go_function *function)
{
	for (__u32 i = 0; i < count; i++)
		if (function->lo - texts[i].vaddr < texts[i].size)
			return function->hi - texts[i].vaddr <= texts[i].size;
	return false;
}

int cfi_go__entries(const struct cfi_section *section, const struct cfi_text *texts,
		    __u32 text_count, struct cfi_entries *out)
{
	const struct go_table *table = &section->go->table;
	struct cfi_entries entries = { 0 };
	struct go_function function;

	entries.cies = calloc(1, sizeof(*entries.cies));
	entries.fdes = calloc((size_t)table->count + 1, sizeof(*entries.fdes));
	if (!entries.cies || !entries.fdes) {
		cfi_entries__free(&entries);
		return -ENOMEM;
	}
	entries.cie_count = 1;
	for (__u32 i = 0; i < table->count; i++) {
		struct cfi_fde *fde = &entries.fdes[entries.fde_count];

		/* The table is sorted by address; a function out of order is damaged. */
		if (!go_table__function(table, i, &function) ||
		    !is_in_text(texts, text_count, &function) ||
		    (entries.fde_count && fde[-1].hi > function.lo))
			continue;
		*fde = (struct cfi_fde){ .lo = function.lo, .hi = function.hi, .cie = 0 };
		fde->program_size = i; /* the function's index */
		entries.fde_count++;
	}
	*out = entries;
	return 0;
}

void cfi_go__add_switch(struct cfi_go *go, __u64 lo, __u64 hi, const struct unwind_rule *rule)
{
	if (lo >= hi || go->switch_count == MAX_GO_SWITCHES)
		return;
	go->switches[go->switch_count++] = (struct go_switch){ lo, hi, *rule };
}

/* Returns the stack switch at @pc, or NULL. *@end is where that changes, at most @hi. */
static const struct go_switch *find_switch(const struct cfi_go *go, __u64 pc, __u64 hi, __u64 *end)
{
	const struct go_switch *found = NULL;

	*end = hi;
	for (__u32 i = 0; i < go->switch_count; i++) {
		const struct go_switch *at = &go->switches[i];

		if (pc >= at->lo && pc < at->hi)
			found = at;
		if (at->lo > pc && at->lo < *end)
			*end = at->lo;
	}
	if (found && found->hi < *end)
		*end = found->hi;
	return found;
}

/* Makes rules for C code that Go's internal linker has linked, which drops call frame information. */
static int run_foreign(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn take,
		       void *ctx)
{
	static const struct unwind_rule none = { 0 };
	const __u8 *code = NULL;

	if (fde->hi - fde->lo <= MAX_FOREIGN_BYTES)
		code = go->code(go->file, fde->lo, fde->hi - fde->lo);
	return code ? cfi_code__run(fde->lo, code, fde->hi - fde->lo, take, ctx)
		    : take(ctx, fde->lo, &none);
}

int cfi_go__run(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn take, void *ctx)
{
	static const struct unwind_rule none = { 0 };
	struct go_function function;
	struct go_depths depths;
	__u64 pc = fde->lo;

	if (!go_table__function(&go->table, fde->program_size, &function))
		return take(ctx, pc, &none);
	if (!function.depths)
		return run_foreign(go, fde, take, ctx);
	depths = go_depths__begin(&function);
	while (pc < fde->hi && go_depths__next(&depths)) {
		const struct unwind_rule usual = cfi_go__depth_rule(&function, depths.depth_bytes);
		__u64 hi = depths.hi < fde->hi ? depths.hi : fde->hi;

		while (pc < hi) {
			struct unwind_rule rule = usual;
			const struct go_switch *at;
			__u64 end;
			int err;

			at = find_switch(go, pc, hi, &end);
			if (at && at->rule.cfa == UNWIND_CFA_NONE) {
				rule.fp_where = at->rule.fp_where;
				rule.fp_offset = at->rule.fp_offset;
			} else if (at) {
				rule = at->rule;
			}
			rule.flags |= UNWIND_OF_CODE;
			err = take(ctx, pc, &rule);
			if (err)
				return err;
			pc = end;
		}
	}
	/* Padding has no rule. */
	return pc < fde->hi ? take(ctx, pc, &none) : 0;
}

__s64 go_function__depth(const struct go_function *function, __u64 pc)
{
	struct go_depths depths = go_depths__begin(function);

	while (depths.hi < function->hi && go_depths__next(&depths))
		if (pc >= depths.lo && pc < depths.hi)
			return depths.depth_bytes;
	return -1;
}
