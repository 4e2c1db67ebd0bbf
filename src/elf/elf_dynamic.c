// SPDX-License-Identifier: GPL-3.0-or-later
/* What the dynamic linker reads of an ELF file: dynamic symbols, their versions, needed libraries, and slots of
 * relocations. */
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdint.h>
#include <string.h>

#include "elf_file.h"
#include "elf_file_internal.h"
#include "elf_x86.h"

/* The first section of @type with its data; false if there is none. */
static bool find_section(const struct elf_file *file, GElf_Word type, GElf_Shdr *shdr,
			 Elf_Data **data, size_t *index)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(file->elf, scn))) {
		if (!gelf_getshdr(scn, shdr) || shdr->sh_type != type)
			continue;
		*data = elf_getdata(scn, NULL);
		if (index)
			*index = elf_ndxscn(scn);
		return *data != NULL;
	}
	return false;
}

/* Symbols with longer names are not looked at: all of a hostile table's may share one of megabytes. */
#define MAX_NAME_SIZE 16384

/* Limits hostile counts to the int that gelf takes as an index. */
static int entries(const Elf_Data *data, size_t entry_size)
{
	size_t n = data->d_size / entry_size;

	return n > INT32_MAX ? INT32_MAX : (int)n;
}

__u64 elf_file__dynamic_value(const struct elf_file *file, GElf_Sxword tag, __u64 missing)
{
	GElf_Shdr shdr;
	Elf_Data *data;
	GElf_Dyn dyn;

	if (!find_section(file, SHT_DYNAMIC, &shdr, &data, NULL))
		return missing;
	for (int i = 0; i < entries(data, sizeof(Elf64_Dyn)) && gelf_getdyn(data, i, &dyn); i++) {
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == tag)
			return dyn.d_un.d_val;
	}
	return missing;
}

const char *elf_file__soname(const struct elf_file *file)
{
	__u64 at = elf_file__dynamic_value(file, DT_SONAME, UINT64_MAX);
	const char *name = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;

	if (at != UINT64_MAX && find_section(file, SHT_DYNAMIC, &shdr, &data, NULL))
		name = elf_strptr(file->elf, shdr.sh_link, at);
	return name ? name : "";
}

int elf_file__for_each_dynamic_string(const struct elf_file *file, __s64 tag,
				      int (*fn)(const char *string, void *arg), void *arg)
{
	GElf_Shdr shdr;
	Elf_Data *data;
	GElf_Dyn dyn;

	if (!find_section(file, SHT_DYNAMIC, &shdr, &data, NULL))
		return 0;
	for (int i = 0; i < entries(data, sizeof(Elf64_Dyn)) && gelf_getdyn(data, i, &dyn); i++) {
		const char *string;
		int ret;

		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag != tag)
			continue;
		string = elf_strptr(file->elf, shdr.sh_link, dyn.d_un.d_val);
		ret = string && *string ? fn(string, arg) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

/* Version indexes of the dynamic symbols; NULL if there are none. */
static Elf_Data *version_data(struct elf_file *file, size_t dynsym_index)
{
	GElf_Shdr shdr;
	Elf_Data *data;

	if (!find_section(file, SHT_GNU_versym, &shdr, &data, NULL) || shdr.sh_link != dynsym_index)
		return NULL;
	return data;
}

static int for_each_symbol_of(struct elf_file *file, GElf_Word type, elf_symbol_fn fn, void *arg)
{
	Elf_Data *versions = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	size_t index;

	if (!find_section(file, type, &shdr, &data, &index))
		return 0;
	if (type == SHT_DYNSYM)
		versions = version_data(file, index);
	for (int i = 1; i < entries(data, sizeof(Elf64_Sym)); i++) {
		struct elf_symbol symbol = { .is_default = true };
		GElf_Versym version;
		GElf_Sym sym;
		int ret;

		if (!gelf_getsym(data, i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		if (sym.st_shndx == SHN_ABS)
			continue;
		/* -static-pie makes hidden symbols of the C library local, malloc among them. */
		if (GELF_ST_BIND(sym.st_info) == STB_LOCAL) {
			if (type == SHT_DYNSYM)
				continue;
			symbol.is_default = false;
		}
		symbol.name = elf_strptr(file->elf, shdr.sh_link, sym.st_name);
		if (!symbol.name || !symbol.name[0] ||
		    strnlen(symbol.name, MAX_NAME_SIZE) == MAX_NAME_SIZE)
			continue;
		symbol.value = sym.st_value;
		symbol.size = sym.st_size;
		symbol.type = GELF_ST_TYPE(sym.st_info);
		if (versions && gelf_getversym(versions, i, &version))
			symbol.is_default = !(version & 0x8000); /* hidden, see Elf64_Versym */
		ret = fn(&symbol, arg);
		if (ret)
			return ret;
	}
	return 0;
}

int elf_file__for_each_symbol(struct elf_file *file, elf_symbol_fn fn, void *arg)
{
	return for_each_symbol_of(file, elf_file__is_static(file) ? SHT_SYMTAB : SHT_DYNSYM, fn,
				  arg);
}

int elf_file__for_each_further_symbol(struct elf_file *file, elf_symbol_fn fn, void *arg)
{
	return elf_file__is_static(file) ? 0 : for_each_symbol_of(file, SHT_SYMTAB, fn, arg);
}

static int compare_name(const struct elf_symbol *symbol, void *arg)
{
	return !strcmp(symbol->name, arg);
}

bool elf_file__defines(struct elf_file *file, const char *name)
{
	return elf_file__for_each_symbol(file, compare_name, (void *)name) > 0;
}

bool elf_file__imports(struct elf_file *file, const char *name)
{
	GElf_Shdr shdr;
	Elf_Data *data;

	if (!find_section(file, SHT_DYNSYM, &shdr, &data, NULL))
		return false;
	for (int i = 1; i < entries(data, sizeof(Elf64_Sym)); i++) {
		const char *found;
		GElf_Sym sym;

		if (!gelf_getsym(data, i, &sym) || sym.st_shndx != SHN_UNDEF)
			continue;
		found = elf_strptr(file->elf, shdr.sh_link, sym.st_name);
		if (found && strcmp(found, name) == 0)
			return true;
	}
	return false;
}

static int for_each_slot_of(struct elf_file *file, Elf_Data *relocations, const GElf_Shdr *shdr,
			    elf_slot_fn fn, void *arg)
{
	Elf_Scn *scn = elf_getscn(file->elf, shdr->sh_link);
	Elf_Data *symbols;
	GElf_Shdr symtab;

	if (!scn || !gelf_getshdr(scn, &symtab) || symtab.sh_type != SHT_DYNSYM)
		return 0;
	symbols = elf_getdata(scn, NULL);
	if (!symbols)
		return 0;
	for (int i = 0; i < entries(relocations, sizeof(Elf64_Rela)); i++) {
		struct elf_slot slot;
		GElf_Rela rela;
		GElf_Sym sym;
		int ret;

		if (!gelf_getrela(relocations, i, &rela) ||
		    !elf_host__is_got_relocation((unsigned int)GELF_R_TYPE(rela.r_info)))
			continue;
		if (GELF_R_SYM(rela.r_info) > INT32_MAX ||
		    !gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym))
			continue;
		slot.vaddr = rela.r_offset;
		slot.name = elf_strptr(file->elf, symtab.sh_link, sym.st_name);
		if (!slot.name || !slot.name[0] ||
		    strnlen(slot.name, MAX_NAME_SIZE) == MAX_NAME_SIZE)
			continue;
		ret = fn(&slot, arg);
		if (ret)
			return ret;
	}
	return 0;
}

int elf_file__for_each_slot(struct elf_file *file, elf_slot_fn fn, void *arg)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	/* Sections of a hostile file may overlap, so the sum of their sizes needs a bound. */
	__u64 budget = file->file_size;

	while ((scn = elf_nextscn(file->elf, scn))) {
		Elf_Data *data;
		int ret;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA)
			continue;
		if (shdr.sh_size > budget)
			return 0;
		budget -= shdr.sh_size;
		data = elf_getdata(scn, NULL);
		if (!data)
			continue;
		ret = for_each_slot_of(file, data, &shdr, fn, arg);
		if (ret)
			return ret;
	}
	return 0;
}
