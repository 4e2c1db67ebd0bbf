// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_headers.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "elf_file_internal.h"
#include "elf_host.h"

int elf_segments__add(struct elf_segments *segments, const Elf64_Phdr *header, __u64 file_size)
{
	__u64 size = header->p_filesz;

	if (header->p_offset >= file_size || header->p_vaddr + size < header->p_vaddr)
		return 0;
	if (size > file_size - header->p_offset)
		size = file_size - header->p_offset;
	if (!size)
		return 0;
	if (segments->n == MAX_SEGMENTS)
		return -ENOEXEC;
	segments->list[segments->n++] = (struct elf_segment){
		.vaddr = header->p_vaddr,
		.offset = header->p_offset,
		.size = size,
		.executable = header->p_flags & PF_X,
	};
	return 0;
}

int elf_segments__vaddr_to_offset(const struct elf_segments *segments, __u64 vaddr, __u64 *offset)
{
	for (size_t i = 0; i < segments->n; i++) {
		const struct elf_segment *segment = &segments->list[i];

		if (vaddr - segment->vaddr >= segment->size)
			continue;
		*offset = segment->offset + (vaddr - segment->vaddr);
		return 0;
	}
	return -ENOENT;
}

static int elf_segments__offset_to_vaddr(const struct elf_segments *segments, __u64 offset,
					 __u64 *vaddr)
{
	/* A page at a border may belong to two segments; then the one with code is taken. */
	for (int executable = 1; executable >= 0; executable--) {
		for (size_t i = 0; i < segments->n; i++) {
			const struct elf_segment *segment = &segments->list[i];

			if (segment->executable != executable ||
			    offset - segment->offset >= segment->size)
				continue;
			*vaddr = segment->vaddr + (offset - segment->offset);
			return 0;
		}
	}
	return -ENOENT;
}

/* The kernel's limit is 64 KiB for all of them. */
#define MAX_HEADERS 1170

static void add(struct executable_parts *parts, const Elf64_Phdr *header)
{
	__u64 size = header->p_filesz;

	if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) ||
	    header->p_offset >= parts->file_bytes || parts->n == MAX_EXECUTABLE_PARTS)
		return;
	if (size > parts->file_bytes - header->p_offset)
		size = parts->file_bytes - header->p_offset;
	if (header->p_vaddr + size >= header->p_vaddr)
		parts->list[parts->n++] = (struct executable_part){
			.vaddr = header->p_vaddr,
			.offset = header->p_offset,
			.size = size,
		};
}

int executable_parts__read(int fd, struct executable_parts *out)
{
	Elf64_Ehdr header;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	err = elf_bytes__read(fd, &header, sizeof(header), 0);
	if (err)
		return err;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    header.e_phnum > MAX_HEADERS)
		return -ENOEXEC;
	out->n = 0;
	out->file_bytes = st.st_size;
	for (__u32 i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr part;

		err = elf_bytes__read(fd, &part, sizeof(part), header.e_phoff + i * sizeof(part));
		if (err)
			return err;
		add(out, &part);
	}
	return 0;
}

bool executable_parts__have(const struct executable_parts *parts, __u64 vaddr, __u64 offset)
{
	for (size_t i = 0; i < parts->n; i++) {
		const struct executable_part *part = &parts->list[i];

		if (vaddr - part->vaddr < part->size &&
		    offset - part->offset == vaddr - part->vaddr)
			return true;
	}
	return false;
}

bool executable_parts__have_offset(const struct executable_parts *parts, __u64 offset)
{
	for (size_t i = 0; i < parts->n; i++)
		if (offset - parts->list[i].offset < parts->list[i].size)
			return true;
	return false;
}

/* The kernel's limit for all program headers; it is used for section headers, too, of which linked
 * files have some dozens. */
#define MAX_HEADERS_BYTES 65536
/* How much of a segment of notes is read; linkers write less than a page. */
#define MAX_NOTES_BYTES 65536

struct elf_headers {
	__u64 entry, file_size;
	struct elf_segments segments;
	char build_id[2 * MAX_BUILD_ID + 1];
};

static size_t padded(size_t size, size_t alignment)
{
	return (size + alignment - 1) & ~(alignment - 1);
}

/* Looks for a build id in the @size bytes at @notes, which are fewer than MAX_NOTES_BYTES. */
static void find_build_id(struct elf_headers *headers, const unsigned char *notes, size_t size,
			  size_t alignment)
{
	Elf64_Nhdr note;

	for (size_t at = 0; at < size && sizeof(note) <= size - at;) {
		size_t name = at + sizeof(note), text, end;

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > size || note.n_descsz > size)
			return;
		text = padded(name + note.n_namesz, alignment);
		end = text + note.n_descsz;
		if (end > size)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(notes + name, "GNU", sizeof("GNU")) && note.n_descsz &&
		    note.n_descsz <= MAX_BUILD_ID) {
			for (size_t i = 0; i < note.n_descsz; i++)
				sprintf(headers->build_id + 2 * i, "%02x", notes[text + i]);
			return;
		}
		at = padded(end, alignment);
	}
}

static int read_notes(int fd, __u64 offset, __u64 size, __u64 alignment,
		      struct elf_headers *headers)
{
	_cleanup_(free_ptr) unsigned char *notes = NULL;

	if (*headers->build_id || !size || size > MAX_NOTES_BYTES)
		return 0;
	notes = malloc(size);
	if (!notes)
		return -ENOMEM;
	if (!elf_bytes__read(fd, notes, size, offset))
		find_build_id(headers, notes, size, alignment == 8 ? 8 : 4);
	return 0;
}

/* Reads a table of @n entries of @size bytes each. Fails with -ENOEXEC if it does not have the
 * format of this processor, or is too large; or the error of reading. */
static int read_table(int fd, __u64 offset, size_t n, size_t size, size_t size_in_file, void **out)
{
	void *table;
	int err;

	if (size != size_in_file || n * size > MAX_HEADERS_BYTES)
		return -ENOEXEC;
	table = malloc(n * size + 1);
	if (!table)
		return -ENOMEM;
	err = elf_bytes__read(fd, table, n * size, offset);
	if (err) {
		free(table);
		return err;
	}
	*out = table;
	return 0;
}

/* Looks for a build id in sections, since Go's linker puts it into no segment of notes. */
static int read_sections(int fd, const Elf64_Ehdr *header, struct elf_headers *headers)
{
	_cleanup_(free_ptr) Elf64_Shdr *list = NULL;
	int err = read_table(fd, header->e_shoff, header->e_shnum, sizeof(*list),
			     header->e_shentsize, (void **)&list);

	for (size_t i = 0; i < header->e_shnum && !err; i++)
		if (list[i].sh_type == SHT_NOTE)
			err = read_notes(fd, list[i].sh_offset, list[i].sh_size,
					 list[i].sh_addralign, headers);
	return err == -ENOMEM ? err : 0;
}

static int read_program_headers(int fd, const Elf64_Ehdr *header, struct elf_headers *headers)
{
	_cleanup_(free_ptr) Elf64_Phdr *list = NULL;
	int err = 0;

	if (!header->e_phnum)
		return 0;
	err = read_table(fd, header->e_phoff, header->e_phnum, sizeof(*list), header->e_phentsize,
			 (void **)&list);
	for (size_t i = 0; i < header->e_phnum && !err; i++) {
		if (list[i].p_type == PT_LOAD)
			err = elf_segments__add(&headers->segments, &list[i], headers->file_size);
		else if (list[i].p_type == PT_NOTE)
			err = read_notes(fd, list[i].p_offset, list[i].p_filesz, list[i].p_align,
					 headers);
	}
	return err;
}

static bool is_for_us(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == elf_host.machine;
}

static bool is_linked(const Elf64_Ehdr *header)
{
	return header->e_type == ET_EXEC || header->e_type == ET_DYN;
}

/* Reads the ELF header. Returns 0 with the size of the file, -ENOEXEC, or the error of reading. */
static int read_header(int fd, Elf64_Ehdr *header, __u64 *file_size)
{
	struct stat st;
	int err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -ENOEXEC;
	err = elf_bytes__read(fd, header, sizeof(*header), 0);
	if (err)
		return err;
	if (!is_for_us(header))
		return -ENOEXEC;
	*file_size = (__u64)st.st_size;
	return 0;
}

static int read_headers(int fd, bool also_unlinked, struct elf_headers **out)
{
	struct elf_headers *headers = calloc(1, sizeof(*headers));
	Elf64_Ehdr header;
	int err;

	if (!headers)
		return -ENOMEM;
	err = read_header(fd, &header, &headers->file_size);
	if (!err && !is_linked(&header) && !(also_unlinked && header.e_type == ET_REL))
		err = -ENOEXEC;
	if (!err) {
		headers->entry = header.e_entry;
		err = read_sections(fd, &header, headers);
	}
	if (!err)
		err = read_program_headers(fd, &header, headers);
	if (err) {
		free(headers);
		return err;
	}
	*out = headers;
	return 0;
}

int elf_headers__read(int fd, struct elf_headers **out)
{
	return read_headers(fd, false, out);
}

int elf_headers__read_any(int fd, struct elf_headers **out)
{
	return read_headers(fd, true, out);
}

void elf_headers__free(struct elf_headers *headers)
{
	free(headers);
}

const char *elf_headers__build_id(const struct elf_headers *headers)
{
	return headers->build_id;
}

__u64 elf_headers__entry(const struct elf_headers *headers)
{
	return headers->entry;
}

int elf_headers__vaddr_to_offset(const struct elf_headers *headers, __u64 vaddr, __u64 *offset)
{
	return elf_segments__vaddr_to_offset(&headers->segments, vaddr, offset);
}

int elf_headers__offset_to_vaddr(const struct elf_headers *headers, __u64 offset, __u64 *vaddr)
{
	return elf_segments__offset_to_vaddr(&headers->segments, offset, vaddr);
}

/* Returns whether the name at @offset in the section of names is @name, of @size bytes with NUL. */
static bool has_name(int fd, const Elf64_Shdr *names, __u64 offset, const char *name, size_t size)
{
	char text[32];

	return size <= sizeof(text) && offset < names->sh_size && size <= names->sh_size - offset &&
	       !elf_bytes__read(fd, text, size, names->sh_offset + offset) &&
	       !memcmp(text, name, size);
}

int elf_headers__debuglink_checksum(int fd, __u32 *checksum)
{
	static const char name[] = ".gnu_debuglink";
	_cleanup_(free_ptr) Elf64_Shdr *list = NULL;
	Elf64_Ehdr header;
	__u64 file_size;
	int err = read_header(fd, &header, &file_size);

	if (!err)
		err = read_table(fd, header.e_shoff, header.e_shnum, sizeof(*list),
				 header.e_shentsize, (void **)&list);
	if (err)
		return err;
	for (size_t i = 0; i < header.e_shnum && header.e_shstrndx < header.e_shnum; i++) {
		const Elf64_Shdr *link = &list[i];

		if (link->sh_type == SHT_NOBITS || link->sh_size <= sizeof(*checksum) ||
		    !has_name(fd, &list[header.e_shstrndx], link->sh_name, name, sizeof(name)))
			continue;
		/* The section has a name, and in its last four bytes the checksum. */
		return elf_bytes__read(fd, checksum, sizeof(*checksum),
				       link->sh_offset + link->sh_size - sizeof(*checksum));
	}
	return -ENOENT;
}
