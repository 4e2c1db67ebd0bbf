// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_open.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libelf needs 300 bytes for each section. Linked programs have some fifty. */
#define MAX_SECTIONS 65536

/* Tools leave small overlaps. */
#define SLACK_BYTES (1ULL << 20)

/* File systems that compress have fewer blocks than bytes, or none if the file is small. */
#define BYTES_PER_STORED_BYTE 16
#define BYTES_WITHOUT_BLOCKS  (64ULL << 20)

/* zlib makes at most a thousand bytes of one; DWARF becomes three to ten times as large. */
#define UNPACKED_PER_BYTE 24
#define UNPACKED_AT_LEAST (64ULL << 20)

/* How many bytes the file can really have. */
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

/* The number of sections where the header has no room for it: it is in the first section, and libelf makes room for so
 * many at once. */
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
		return true; /* libelf says what it is */
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

/* libelf searches backwards for the end of the last string, each time that it is asked for one. */
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
