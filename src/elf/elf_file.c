// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "elf_file_internal.h"
#include "elf_host.h"
#include "go_table.h"

/* How many sections a file may have: libelf needs 300 bytes for each. Linked programs have some
 * fifty. */
#define MAX_SECTIONS 65536

/* Overlaps that are tolerated, since tools leave small ones. */
#define SLACK_BYTES (1ULL << 20)

/* How many bytes a file may have for each stored one. File systems that compress have fewer blocks
 * than bytes, or none if the file is small. */
#define BYTES_PER_STORED_BYTE 16
#define BYTES_WITHOUT_BLOCKS  (64ULL << 20)

/* How many bytes may be unpacked for each byte: zlib makes at most a thousand of one; DWARF
 * becomes three to ten times as large. */
#define UNPACKED_PER_BYTE 24
#define UNPACKED_AT_LEAST (64ULL << 20)

/* Returns how many bytes the file can really have. */
static __u64 content_bytes(const struct stat *st)
{
	__u64 stored = (__u64)st->st_blocks * 512;

	if (stored >= (__u64)st->st_size)
		return st->st_size;
	stored = BYTES_WITHOUT_BLOCKS + stored * BYTES_PER_STORED_BYTE;
	return stored < (__u64)st->st_size ? stored : (__u64)st->st_size;
}

__u64 elf_open__most_unpacked_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : UNPACKED_AT_LEAST + content_bytes(&st) * UNPACKED_PER_BYTE;
}

/* Returns whether the file has few sections even if the header has no room for their number, which
 * then is in the first section; libelf makes room for so many at once. */
static bool has_few_sections(int fd)
{
	union {
		Elf32_Shdr as_32;
		Elf64_Shdr as_64;
	} section = { 0 };
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr as_32;
		Elf64_Ehdr as_64;
	} header;

	if (pread(fd, &header, sizeof(header), 0) < (ssize_t)sizeof(header.as_32))
		return true; /* libelf will report that the file is too short */
	if (header.ident[EI_CLASS] == ELFCLASS32) {
		if (header.as_32.e_shnum || !header.as_32.e_shoff)
			return true;
		return pread(fd, &section, sizeof(section.as_32), header.as_32.e_shoff) ==
			       (ssize_t)sizeof(section.as_32) &&
		       section.as_32.sh_size <= MAX_SECTIONS;
	}
	if (header.as_64.e_shnum || !header.as_64.e_shoff)
		return true;
	return pread(fd, &section, sizeof(section.as_64), (off_t)header.as_64.e_shoff) ==
		       (ssize_t)sizeof(section.as_64) &&
	       section.as_64.sh_size <= MAX_SECTIONS;
}

static bool add(__u64 *sum, __u64 bytes, __u64 most)
{
	return !__builtin_add_overflow(*sum, bytes, sum) && *sum <= most;
}

/* Returns whether the last string ends: libelf searches backwards for its end each time that it is
 * asked for a string. */
static bool has_end(int fd, const GElf_Shdr *strings)
{
	char last;

	return !strings->sh_size ||
	       (!(strings->sh_flags & SHF_COMPRESSED) &&
		pread(fd, &last, 1, (off_t)(strings->sh_offset + strings->sh_size - 1)) == 1 &&
		!last);
}

static bool sections_fit(Elf *elf, int fd, __u64 most, __u64 most_unpacked)
{
	__u64 sum = 0, unpacked = 0;
	Elf_Scn *section = NULL;
	GElf_Chdr compressed;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		if (!add(&sum, header.sh_size, most) ||
		    (header.sh_type == SHT_STRTAB && !has_end(fd, &header)))
			return false;
		if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compressed) &&
		    !add(&unpacked, compressed.ch_size, most_unpacked))
			return false;
	}
	return true;
}

static bool segments_fit(Elf *elf, __u64 file_size, __u64 most)
{
	__u64 loaded = 0, others = 0;
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return true;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;
		__u64 bytes;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_offset >= file_size)
			continue;
		bytes = file_size - header.p_offset;
		if (bytes > header.p_filesz)
			bytes = header.p_filesz;
		if (!add(header.p_type == PT_LOAD ? &loaded : &others, bytes, most))
			return false;
	}
	return true;
}

int elf_open__begin(int fd, Elf_Cmd command, Elf **out)
{
	struct stat st;
	__u64 most;
	Elf *elf;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !has_few_sections(fd))
		return -ENOEXEC;
	most = content_bytes(&st) + SLACK_BYTES;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, command, NULL);
	if (!elf)
		return -ENOEXEC;
	if (!sections_fit(elf, fd, most, elf_open__most_unpacked_bytes(fd)) ||
	    !segments_fit(elf, st.st_size, most)) {
		elf_end(elf);
		return -ENOEXEC;
	}
	*out = elf;
	return 0;
}

static int check_ident(struct elf_file *file, struct error *error)
{
	unsigned char ident[EI_NIDENT];

	if (elf_bytes__read(file->fd, ident, sizeof(ident), 0) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0)
		return error__set(error, -ENOEXEC,
				  "%s is not an ELF file: give a program or a shared library",
				  file->path);
	if (ident[EI_CLASS] != ELFCLASS64)
		return error__set(error, -ENOTSUP, "%s is " ELF_32_BIT, file->path);
	if (ident[EI_DATA] != ELFDATA2LSB)
		return error__set(error, -ENOTSUP,
				  "%s is big-endian: only " ALLOCPROF_PROCESSOR
				  " code can be profiled",
				  file->path);
	return 0;
}

static int check_header(struct elf_file *file, struct error *error)
{
	if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &file->ehdr))
		return error__set(error, -ENOEXEC, "%s is a damaged ELF file: %s", file->path,
				  elf_errmsg(-1));
	if (file->ehdr.e_machine != elf_host.machine)
		return error__set(
			error, -ENOTSUP,
			"%s is for another processor (ELF machine %u): only " ALLOCPROF_PROCESSOR
			" code can be profiled",
			file->path, file->ehdr.e_machine);
	if (file->ehdr.e_type != ET_EXEC && file->ehdr.e_type != ET_DYN)
		return error__set(
			error, -ENOTSUP,
			"%s is neither a program nor a shared library (ELF type %u): give the "
			"linked file",
			file->path, file->ehdr.e_type);
	return 0;
}

static void read_interpreter(struct elf_file *file, const GElf_Phdr *phdr)
{
	char text[sizeof(file->interpreter)] = "";
	size_t size = phdr->p_filesz;

	if (size == 0 || size > sizeof(text) ||
	    elf_bytes__read(file->fd, text, size, phdr->p_offset))
		return;
	if (memchr(text, '\0', size))
		strcpy(file->interpreter, text);
}

static int read_program_headers(struct elf_file *file, struct error *error)
{
	size_t n;

	if (elf_getphdrnum(file->elf, &n))
		return error__set(error, -ENOEXEC, "%s has damaged program headers: %s", file->path,
				  elf_errmsg(-1));
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(file->elf, (int)i, &phdr))
			return error__set(error, -ENOEXEC, "%s has damaged program headers: %s",
					  file->path, elf_errmsg(-1));
		switch (phdr.p_type) {
		case PT_LOAD:
			if (elf_segments__add(&file->segments, &phdr, file->file_size))
				return error__set(
					error, -ENOEXEC,
					"%s has more than %d load segments, which no linker "
					"writes: it is damaged",
					file->path, MAX_SEGMENTS);
			break;
		case PT_INTERP:
			read_interpreter(file, &phdr);
			break;
		case PT_DYNAMIC:
			file->has_dynamic = true;
			break;
		case PT_GNU_EH_FRAME:
			file->eh_frame_hdr_vaddr = phdr.p_vaddr;
			file->eh_frame_hdr_size = phdr.p_filesz;
			break;
		}
	}
	return 0;
}

static void read_build_id(struct elf_file *file)
{
	const void *bits;
	ssize_t len = dwelf_elf_gnu_build_id(file->elf, &bits);

	if (len <= 0 || len > MAX_BUILD_ID)
		return;
	for (ssize_t i = 0; i < len; i++)
		sprintf(file->build_id + 2 * i, "%02x", ((const unsigned char *)bits)[i]);
}

int elf_file__open(int fd, const char *path, struct elf_file **out, struct error *error)
{
	struct elf_file *file = calloc(1, sizeof(*file));
	struct stat st;
	int err;

	if (!file)
		return error__set(error, -ENOMEM, "no memory to read %s", path);
	/* The descriptor is duplicated, since the caller may close @fd. */
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file->path = strdup(path);
	if (!file->path) {
		err = error__set(error, -ENOMEM, "no memory to read %s", path);
		goto out;
	}
	if (file->fd < 0 || fstat(file->fd, &st)) {
		err = error__set(error, -errno, "cannot read %s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err = error__set(error, -ENOEXEC,
				 "%s is not a regular file: give a program or a shared library",
				 path);
		goto out;
	}
	file->file_size = (__u64)st.st_size;
	err = check_ident(file, error);
	if (err)
		goto out;
	err = elf_open__begin(file->fd, ELF_C_READ, &file->elf);
	if (err) {
		error__set(error, err, "%s is a damaged ELF file: its tables say more than it has",
			   path);
		goto out;
	}
	err = check_header(file, error);
	if (err)
		goto out;
	err = read_program_headers(file, error);
	if (err)
		goto out;
	read_build_id(file);
	*out = file;
	return 0;
out:
	elf_file__free(file);
	return err;
}

void elf_file__free(struct elf_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < file->segments.n; i++)
		free(file->code[i]);
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}

const char *elf_file__build_id(const struct elf_file *file)
{
	return file->build_id;
}

const char *elf_file__interpreter(const struct elf_file *file)
{
	return file->interpreter;
}

/* Stores the first section of @type with its data. Returns false if there is none. */
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

/* Symbols with longer names are ignored: all symbols of a hostile table may share one of
 * megabytes. */
#define MAX_NAME_SIZE 16384

/* Returns the number of entries, limited to the int that gelf takes as an index, since a file may
 * be hostile. */
static int entries(const Elf_Data *data, size_t entry_size)
{
	size_t n = data->d_size / entry_size;

	return n > INT32_MAX ? INT32_MAX : (int)n;
}

static __u64 dynamic_value(const struct elf_file *file, GElf_Sxword tag, __u64 missing)
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

static bool is_pie(const struct elf_file *file)
{
	return file->ehdr.e_type == ET_DYN && dynamic_value(file, DT_FLAGS_1, 0) & DF_1_PIE;
}

bool elf_file__is_static(const struct elf_file *file)
{
	if (file->interpreter[0])
		return false;
	return !file->has_dynamic || is_pie(file);
}

bool elf_file__is_fixed(const struct elf_file *file)
{
	return file->ehdr.e_type == ET_EXEC;
}

bool elf_file__is_program(const struct elf_file *file)
{
	if (elf_file__is_fixed(file) || is_pie(file))
		return true;
	/* Some linkers do not set DF_1_PIE. */
	return file->interpreter[0] && dynamic_value(file, DT_SONAME, UINT64_MAX) == UINT64_MAX;
}

bool elf_file__is_go(const struct elf_file *file)
{
	return go_table__is_go(file->elf);
}

int elf_file__vaddr_to_offset(const struct elf_file *file, __u64 vaddr, __u64 *offset)
{
	return elf_segments__vaddr_to_offset(&file->segments, vaddr, offset);
}

int elf_file__text_range(const struct elf_file *file, __u64 *start, __u64 *end)
{
	__u64 low = UINT64_MAX;
	__u64 high = 0;

	for (size_t i = 0; i < file->segments.n; i++) {
		const struct elf_segment *segment = &file->segments.list[i];

		if (!segment->executable)
			continue;
		if (segment->vaddr < low)
			low = segment->vaddr;
		if (segment->vaddr + segment->size > high)
			high = segment->vaddr + segment->size;
	}
	if (low >= high)
		return -ENOENT;
	*start = low;
	*end = high;
	return 0;
}

static int load_text(const struct elf_file *file, const struct elf_segment *segment,
		     unsigned char **out)
{
	unsigned char *code;
	int err;

	if (segment->size > MAX_TEXT)
		return -EFBIG;
	code = malloc(segment->size);
	if (!code)
		return -ENOMEM;
	err = elf_bytes__read(file->fd, code, segment->size, segment->offset);
	if (err) {
		free(code);
		return err;
	}
	*out = code;
	return 0;
}

int elf_file__text(struct elf_file *file, size_t index, struct elf_text *out)
{
	for (size_t i = 0; i < file->segments.n; i++) {
		const struct elf_segment *segment = &file->segments.list[i];

		if (!segment->executable || index--)
			continue;
		if (!file->code[i]) {
			int err = load_text(file, segment, &file->code[i]);

			if (err)
				return err;
		}
		out->vaddr = segment->vaddr;
		out->offset = segment->offset;
		out->size = segment->size;
		out->code = file->code[i];
		return 0;
	}
	return -ENOENT;
}

int elf_file__fde_starts(const struct elf_file *file, __u64 **out, size_t *n)
{
	/* See the Linux Standard Base, "The .eh_frame_hdr section". The table has pairs of 32-bit
	 * offsets from the section's start: of the code and of its FDE. */
	const size_t header_size = 12;
	_cleanup_(free_ptr) unsigned char *table = NULL;
	unsigned char header[12];
	__u64 *starts;
	uint32_t count;
	__u64 offset;

	if (elf_file__vaddr_to_offset(file, file->eh_frame_hdr_vaddr, &offset) ||
	    file->eh_frame_hdr_size < header_size ||
	    elf_bytes__read(file->fd, header, header_size, offset))
		goto none;
	if (header[0] != 1 || header[1] != (DW_EH_PE_pcrel | DW_EH_PE_sdata4) ||
	    header[2] != DW_EH_PE_udata4 || header[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		goto none;
	memcpy(&count, header + 8, sizeof(count));
	if (count == 0 || count > MAX_FDES || count > (file->eh_frame_hdr_size - header_size) / 8 ||
	    count > file->file_size / 8)
		goto none;
	table = malloc((size_t)count * 8);
	starts = malloc((size_t)count * sizeof(*starts));
	if (!table || !starts) {
		free(starts);
		return -ENOMEM;
	}
	if (elf_bytes__read(file->fd, table, (size_t)count * 8, offset + header_size)) {
		free(starts);
		goto none;
	}
	for (uint32_t i = 0; i < count; i++) {
		int32_t distance;

		memcpy(&distance, table + (size_t)i * 8, sizeof(distance));
		starts[i] = file->eh_frame_hdr_vaddr + (__u64)(int64_t)distance;
	}
	*out = starts;
	*n = count;
	return 0;
none:
	*out = NULL;
	*n = 0;
	return 0;
}

/* What the dynamic linker reads of an ELF file: dynamic symbols, their versions, needed libraries, and slots of
 * relocations. */

const char *elf_file__soname(const struct elf_file *file)
{
	__u64 at = dynamic_value(file, DT_SONAME, UINT64_MAX);
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

/* Returns the version indexes of the dynamic symbols; NULL if there are none. */
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
			symbol.is_default = !(version & 0x8000); /* not hidden, see Elf64_Versym */
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
	/* Sections of a hostile file may overlap, so the sum of their sizes must be limited. */
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
