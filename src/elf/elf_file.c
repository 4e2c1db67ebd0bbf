// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "elf_file_internal.h"
#include "elf_open.h"
#include "elf_read.h"
#include "elf_x86.h"
#include "go_table.h"

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
				  "%s is big-endian: only " ELF_HOST_MACHINE_NAME
				  " code can be profiled",
				  file->path);
	return 0;
}

static int check_header(struct elf_file *file, struct error *error)
{
	if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &file->ehdr))
		return error__set(error, -ENOEXEC, "%s is a damaged ELF file: %s", file->path,
				  elf_errmsg(-1));
	if (file->ehdr.e_machine != ELF_HOST_MACHINE)
		return error__set(
			error, -ENOTSUP,
			"%s is for another processor (ELF machine %u): only " ELF_HOST_MACHINE_NAME
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
	/* A descriptor of our own, because the caller may close @fd. */
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

static bool is_pie(const struct elf_file *file)
{
	return file->ehdr.e_type == ET_DYN &&
	       elf_file__dynamic_value(file, DT_FLAGS_1, 0) & DF_1_PIE;
}

bool elf_file__is_static(const struct elf_file *file)
{
	if (file->interpreter[0])
		return false;
	return !file->has_dynamic || is_pie(file);
}

bool elf_file__is_program(const struct elf_file *file)
{
	if (file->ehdr.e_type == ET_EXEC || is_pie(file))
		return true;
	/* Some linkers do not set DF_1_PIE. */
	return file->interpreter[0] &&
	       elf_file__dynamic_value(file, DT_SONAME, UINT64_MAX) == UINT64_MAX;
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
	/* Linux Standard Base, "The .eh_frame_hdr section". The table has pairs of 32-bit offsets
	 * from the section's start: of the code and of its FDE. */
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
