// SPDX-License-Identifier: GPL-3.0-or-later
#include "executable_parts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "elf_read.h"

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
