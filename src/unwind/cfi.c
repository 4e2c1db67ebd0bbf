// SPDX-License-Identifier: GPL-3.0-or-later
#include "cfi.h"

#include "cfi_internal.h"
#include "cleanup.h"
#include "elf_file.h"
#include "error.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Limit of a section's size; the claimed size of a compressed section can be checked only by
 * decompressing it. */
#define MAX_SECTION_BYTES (1ull << 29)

static int check_header(struct cfi_file *file)
{
	GElf_Ehdr ehdr;

	if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &ehdr))
		return error__set(file->error, -ENOEXEC, "%s is no ELF file", file->name);
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN)
		return error__set(file->error, -ENOEXEC,
				  "%s is neither an executable nor a shared object", file->name);
	if (ehdr.e_machine == cfi_arch_host.machine && ehdr.e_ident[EI_CLASS] == ELFCLASS64 &&
	    ehdr.e_ident[EI_DATA] == ELFDATA2LSB) {
		file->arch = &cfi_arch_host;
		file->code_arch = &cfi_code_host;
		return 0;
	}
	return error__set(file->error, -EOPNOTSUPP,
			  "%s is for a processor that stacks cannot be unwound on (ELF machine %u)",
			  file->name, ehdr.e_machine);
}

static int compare_texts(const void *a, const void *b)
{
	const struct cfi_text *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Collects executable segments, without parts beyond the file or covered by a later segment. */
static int read_texts(struct cfi_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		count = 0;
	for (size_t i = 0; i < count && file->text_count < UNWIND_MAX_SEGMENTS; i++) {
		GElf_Phdr phdr;
		__u64 size;

		if (!gelf_getphdr(file->elf, (int)i, &phdr))
			break;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) || phdr.p_offset >= file->size)
			continue;
		size = phdr.p_filesz < phdr.p_memsz ? phdr.p_filesz : phdr.p_memsz;
		if (size > file->size - phdr.p_offset)
			size = file->size - phdr.p_offset;
		if (!size || phdr.p_vaddr + size < phdr.p_vaddr)
			continue;
		file->texts[file->text_count++] =
			(struct cfi_text){ phdr.p_vaddr, phdr.p_offset, size };
	}
	if (!file->text_count)
		return error__set(file->error, -ENODATA, "%s has no executable segment",
				  file->name);
	qsort(file->texts, file->text_count, sizeof(file->texts[0]), compare_texts);
	for (__u32 i = 0; i + 1 < file->text_count; i++) {
		__u64 room = file->texts[i + 1].vaddr - file->texts[i].vaddr;

		if (file->texts[i].size > room)
			file->texts[i].size = room;
	}
	return 0;
}

/* Decompresses @scn; false if its size exceeds the limit. */
static bool decompress(Elf_Scn *scn, const GElf_Shdr *shdr)
{
	GElf_Chdr chdr;

	if (!(shdr->sh_flags & SHF_COMPRESSED))
		return shdr->sh_size <= MAX_SECTION_BYTES;
	return gelf_getchdr(scn, &chdr) && chdr.ch_size <= MAX_SECTION_BYTES &&
	       elf_compress(scn, 0, 0) >= 0;
}

static int add_section(struct cfi_file *file, Elf_Scn *scn, const GElf_Shdr *shdr, bool debug_frame)
{
	Elf_Data *data;

	if (!decompress(scn, shdr))
		return error__set(file->error, -EFBIG,
				  "the call frame information of %s is too large or broken",
				  file->name);
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return 0;
	file->sections[file->section_count++] =
		(struct cfi_section){ .data = data->d_buf,
				      .size = data->d_size,
				      .vaddr = debug_frame ? 0 : shdr->sh_addr,
				      .debug_frame = debug_frame };
	return 0;
}

static int find_section(struct cfi_file *file, const char *name, bool debug_frame)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return 0;
	while ((scn = elf_nextscn(file->elf, scn))) {
		const char *scn_name;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		scn_name = elf_strptr(file->elf, names, shdr.sh_name);
		if (scn_name && !strcmp(scn_name, name))
			return add_section(file, scn, &shdr, debug_frame);
	}
	return 0;
}

/* Returns the data from @vaddr to the end of its segment; NULL if there is none. */
static Elf_Data *data_at(const struct cfi_file *file, __u64 vaddr, __u64 limit)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;
		__u64 offset, size;

		if (!gelf_getphdr(file->elf, (int)i, &phdr))
			return NULL;
		if (phdr.p_type != PT_LOAD || vaddr - phdr.p_vaddr >= phdr.p_filesz)
			continue;
		size = phdr.p_filesz - (vaddr - phdr.p_vaddr);
		if (__builtin_add_overflow(phdr.p_offset, vaddr - phdr.p_vaddr, &offset) ||
		    offset >= file->size)
			continue;
		if (size > file->size - offset)
			size = file->size - offset;
		if (size > limit)
			size = limit;
		return elf_getdata_rawchunk(file->elf, (int64_t)offset, size, ELF_T_BYTE);
	}
	return NULL;
}

/* Finds .eh_frame by PT_GNU_EH_FRAME, in files without section headers. */
static void find_by_header(struct cfi_file *file, const GElf_Phdr *phdr)
{
	struct cfi_section header = { .vaddr = phdr->p_vaddr };
	__u64 vaddr, fdes_expected = 0;
	struct dwarf_cursor c;
	__u8 encodings[3];
	Elf_Data *data;

	/* The header, eh_frame_ptr and fde_count; LSB 5.0 core, 10.6.2. */
	data = data_at(file, phdr->p_vaddr, 4 + 2 * 10);
	if (!data || !data->d_buf)
		return;
	header.data = data->d_buf;
	header.size = data->d_size;
	c = (struct dwarf_cursor){ header.data, header.data + header.size, false };
	if (dwarf_cursor__u8(&c) != 1)
		return;
	for (int i = 0; i < 3; i++)
		encodings[i] = dwarf_cursor__u8(&c);
	if (cfi_pointer__read(&c, encodings[0], &header, header.vaddr, &vaddr))
		return;
	if (encodings[1] == DW_EH_PE_omit ||
	    cfi_pointer__read(&c, encodings[1], &header, header.vaddr, &fdes_expected))
		fdes_expected = 0;

	data = data_at(file, vaddr, MAX_SECTION_BYTES);
	if (!data || !data->d_buf)
		return;
	file->sections[file->section_count++] =
		(struct cfi_section){ .data = data->d_buf,
				      .size = data->d_size,
				      .vaddr = vaddr,
				      .ends_at_zero = true,
				      .fdes_expected = fdes_expected };
}

static void find_by_segment(struct cfi_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(file->elf, (int)i, &phdr) && phdr.p_type == PT_GNU_EH_FRAME) {
			find_by_header(file, &phdr);
			return;
		}
	}
}

static bool is_named(const struct go_function *function, const char *name)
{
	return function->name_size == strlen(name) &&
	       !memcmp(function->name, name, function->name_size);
}

static const __u8 *code_at(void *file, __u64 vaddr, __u64 size)
{
	Elf_Data *code = data_at(file, vaddr, size);

	return code && code->d_size == size ? code->d_buf : NULL;
}

static void find_switches(struct cfi_file *file, enum go_runtime which,
			  const struct go_function *function)
{
	__u64 size = function->hi - function->lo;
	const __u8 *code = code_at(file, function->lo, size);

	if (code)
		file->code_arch->find_go_switches(&file->go, which, function, code, size);
}

static void find_go(struct cfi_file *file)
{
	static const char *const names[GO_RUNTIME_FUNCTIONS] = {
		[GO_ASMCGOCALL] = "runtime.asmcgocall",
		[GO_CROSSCALL2] = "crosscall2",
		[GO_CGOCALLBACK] = "runtime.cgocallback",
		[GO_SYSTEMSTACK] = "runtime.systemstack",
		[GO_MCALL] = "runtime.mcall",
		[GO_MORESTACK] = "runtime.morestack",
	};
	/* Two entries for each function, for Go's two calling conventions. */
	struct go_function found[GO_RUNTIME_FUNCTIONS][2];
	__u32 counts[GO_RUNTIME_FUNCTIONS] = { 0 };
	struct go_function function;

	if (go_table__open(file->elf, &file->go.table))
		return;
	file->go.code = code_at;
	file->go.file = file;
	for (__u32 i = 0; i < file->go.table.count; i++) {
		if (!go_table__function(&file->go.table, i, &function))
			continue;
		for (int which = 0; which < GO_RUNTIME_FUNCTIONS; which++)
			if (counts[which] < 2 && is_named(&function, names[which]))
				found[which][counts[which]++] = function;
	}
	for (int which = 0; which < GO_RUNTIME_FUNCTIONS; which++)
		for (__u32 i = 0; i < counts[which]; i++)
			find_switches(file, which, &found[which][i]);
	file->sections[file->section_count++] = (struct cfi_section){ .go = &file->go };
}

static int read_sections(struct cfi_file *file)
{
	int err = check_header(file);

	if (err)
		return err;
	err = read_texts(file);
	if (err)
		return err;
	err = find_section(file, ".eh_frame", false);
	if (err)
		return err;
	if (!file->section_count)
		find_by_segment(file);
	find_go(file);
	err = find_section(file, ".debug_frame", true);
	if (err)
		return err;
	file->bare.code = code_at;
	file->bare.file = file;
	err = cfi_bare__find(file);
	if (err)
		return error__set(file->error, err, "cannot read %s: out of memory", file->name);
	if (!file->section_count)
		return error__set(file->error, -ENODATA, "%s has no call frame information",
				  file->name);
	return 0;
}

static int compile(struct cfi_file *file, struct cfi_table **out)
{
	int err = read_sections(file);

	if (err)
		return err;
	err = cfi_table__compile(file->arch, file->sections, file->section_count, file->texts,
				 file->text_count, out);
	switch (err) {
	case 0:
		return 0;
	case -ENODATA:
		return error__set(file->error, err, "%s has no usable call frame information",
				  file->name);
	case -EFBIG:
		return error__set(file->error, err,
				  "the code or the call frame information of %s is too large",
				  file->name);
	default:
		return error__set(file->error, err, "cannot build the unwind table of %s: %s",
				  file->name, strerror(-err));
	}
}

static void end_elf(Elf **elf)
{
	elf_end(*elf);
}

static void free_file(struct cfi_file **file)
{
	if (*file)
		free((*file)->bare.fdes);
	free(*file);
}

static int build(Elf *elf, const char *name, __u64 size, struct cfi_table **out,
		 struct error *error)
{
	_cleanup_(free_file) struct cfi_file *file = calloc(1, sizeof(*file));

	if (!file)
		return error__set(error, -ENOMEM, "cannot read %s: out of memory", name);
	file->elf = elf;
	file->name = name;
	file->size = size;
	file->error = error;
	return compile(file, out);
}

int cfi_table__build(int fd, const char *path, struct cfi_table **out, struct error *error)
{
	_cleanup_(end_elf) Elf *elf = NULL;
	struct stat st;

	if (fstat(fd, &st)) {
		int err = -errno;

		return error__set(error, err, "cannot read %s: %s", path, strerror(-err));
	}
	/* The file is read, not mapped: it may shrink meanwhile, which would raise SIGBUS. */
	if (elf_open__begin(fd, ELF_C_READ, &elf))
		return error__set(error, -ENOEXEC, "cannot read %s: it is no sound ELF file", path);
	return build(elf, path, (__u64)st.st_size, out, error);
}

int cfi_table__build_image(const void *image, size_t size_bytes, const char *name,
			   struct cfi_table **out, struct error *error)
{
	_cleanup_(end_elf) Elf *elf = NULL;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image, size_bytes);
	if (!elf)
		return error__set(error, -ENOEXEC, "cannot read %s: %s", name, elf_errmsg(-1));
	return build(elf, name, size_bytes, out, error);
}

int cfi_file__open(int fd, struct cfi_file **out)
{
	struct cfi_file *file = calloc(1, sizeof(*file));
	struct stat st;
	int err;

	if (!file)
		return -ENOMEM;
	file->name = "the file";
	err = fstat(fd, &st) ? -errno : elf_open__begin(fd, ELF_C_READ, &file->elf);
	if (!err) {
		file->size = (__u64)st.st_size;
		err = read_sections(file);
	}
	if (err) {
		cfi_file__close(file);
		return err;
	}
	*out = file;
	return 0;
}

void cfi_file__close(struct cfi_file *file)
{
	if (!file)
		return;
	elf_end(file->elf);
	free_file(&file);
}

const char *cfi__reject_name(enum cfi_reject reject)
{
	static const char *const names[CFI_REJECTS] = {
		[CFI_OK] = "ok",
		[CFI_REJECT_LENGTH] = "entry length",
		[CFI_REJECT_TRUNCATED] = "truncated",
		[CFI_REJECT_CIE] = "bad CIE",
		[CFI_REJECT_VERSION] = "CIE version",
		[CFI_REJECT_AUGMENTATION] = "augmentation",
		[CFI_REJECT_ENCODING] = "pointer encoding",
		[CFI_REJECT_RANGE] = "empty range",
		[CFI_REJECT_OUTSIDE] = "outside of code",
		[CFI_REJECT_OVERLAP] = "overlap",
		[CFI_REJECT_OPCODE] = "unknown instruction",
		[CFI_REJECT_PROGRAM] = "misplaced instruction",
	};

	return reject < CFI_REJECTS ? names[reject] : "?";
}

const char *cfi__unsupported_name(enum unwind_unsupported kind)
{
	static const char *const names[UNWIND_UNSUPPORTED_KINDS] = {
		[UNWIND_UNSUPPORTED_CFA_MISSING] = "no CFA",
		[UNWIND_UNSUPPORTED_CFA_EXPRESSION] = "CFA expression",
		[UNWIND_UNSUPPORTED_CFA_REGISTER] = "CFA register",
		[UNWIND_UNSUPPORTED_SP] = "sp not the CFA",
		[UNWIND_UNSUPPORTED_FP_EXPRESSION] = "fp expression",
		[UNWIND_UNSUPPORTED_FP_REGISTER] = "fp in a register",
		[UNWIND_UNSUPPORTED_RA_EXPRESSION] = "return address expression",
		[UNWIND_UNSUPPORTED_RA_REGISTER] = "return address in a register",
		[UNWIND_UNSUPPORTED_RA_UNKNOWN] = "no return address",
		[UNWIND_UNSUPPORTED_OFFSET] = "offset too large",
		[UNWIND_UNSUPPORTED_BAD_FDE] = "broken FDE",
		[UNWIND_UNSUPPORTED_RULES] = "too many rules",
	};

	return kind < UNWIND_UNSUPPORTED_KINDS ? names[kind] : "?";
}
