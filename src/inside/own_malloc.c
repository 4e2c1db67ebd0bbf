// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Looks malloc up among the symbols that a program exports, and among all that its file names. */
#include "own_malloc.h"

#include "elf_symbols.h"
#include "sys.h"

/* A program that defines one of these has an allocator linked into it, whose functions nobody else calls. */
static const char *const hidden_names[] = {
	"je_malloc", "_rjem_malloc", "mi_malloc", "tc_malloc", "scalable_malloc", "GC_malloc",
};

#define MAX_SECTIONS	  4096
#define MAX_SECTION_BYTES (64 << 20)

/* Read at a time; a child of vfork(2) may have little stack. */
#define PART_BYTES 1024

/* Longer than any of the names, with the bytes around it. */
#define OVERLAP 24

static bool read_section(int fd, const Elf64_Ehdr *header, __u32 index, Elf64_Shdr *section)
{
	return index < header->e_shnum && index < MAX_SECTIONS &&
	       !sys__read_at(fd, section, sizeof(*section),
			     header->e_shoff + index * sizeof(*section));
}

/* Places of the names among the strings. A file has each of them once, or with longer names that end so. */
#define MAX_PLACES 16

struct places {
	__u32 n;
	__u32 at[MAX_PLACES];
};

static bool has_place(const struct places *places, __u32 place)
{
	for (__u32 i = 0; i < places->n; i++)
		if (places->at[i] == place)
			return true;
	return false;
}

static bool is_defined(int fd, const Elf64_Shdr *symbols, const struct places *places)
{
	Elf64_Sym part[PART_BYTES / sizeof(Elf64_Sym)];
	const __u32 most = sizeof(part) / sizeof(part[0]);
	__u64 left = symbols->sh_size / sizeof(part[0]), at = symbols->sh_offset;

	while (left) {
		__u32 n = left < most ? left : most;

		if (sys__read_at(fd, part, n * sizeof(part[0]), at))
			return false;
		for (__u32 i = 0; i < n; i++)
			if (part[i].st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(part[i].st_info) == STT_FUNC &&
			    has_place(places, part[i].st_name))
				return true;
		left -= n;
		at += n * sizeof(part[0]);
	}
	return false;
}

/* Where one of the names is in @bytes from @from on, from a 0 to a 0; @n if none is. */
static __u32 find_name(const char *bytes, __u32 from, __u32 n)
{
	for (__u32 i = from; i + OVERLAP <= n; i++)
		for (__u32 j = 0; !bytes[i - 1] && j < sizeof(hidden_names) / sizeof(char *); j++)
			if (text__equal(bytes + i, hidden_names[j]))
				return i;
	return n;
}

static void find_places(int fd, const Elf64_Shdr *strings, struct places *out)
{
	char bytes[PART_BYTES + OVERLAP];
	__u64 at = 0;

	out->n = 0;
	while (at < strings->sh_size) {
		__u64 left = strings->sh_size - at;
		__u32 n = left < PART_BYTES ? left : PART_BYTES, found = 1;

		memset(bytes + n, 0, OVERLAP);
		if (sys__read_at(fd, bytes, n, strings->sh_offset + at))
			return;
		while ((found = find_name(bytes, found, n + OVERLAP)) < n) {
			if (!has_place(out, at + found))
				out->at[out->n++] = at + found;
			if (out->n == MAX_PLACES)
				return;
			found++;
		}
		if (left <= PART_BYTES)
			break;
		at += PART_BYTES - OVERLAP;
	}
}

static bool has_hidden_names(int fd, const Elf64_Ehdr *header)
{
	Elf64_Shdr symbols, strings;
	struct places places;

	if (header->e_shentsize != sizeof(symbols))
		return false;
	for (__u32 i = 0; read_section(fd, header, i, &symbols); i++)
		if (symbols.sh_type == SHT_SYMTAB) {
			if (symbols.sh_size > MAX_SECTION_BYTES ||
			    !read_section(fd, header, symbols.sh_link, &strings) ||
			    strings.sh_size > MAX_SECTION_BYTES)
				return false;
			find_places(fd, &strings, &places);
			return places.n && is_defined(fd, &symbols, &places);
		}
	return false;
}

bool program__has_malloc(int fd, const Elf64_Ehdr *header)
{
	struct file_symbols exported;

	return (file_symbols__open(&exported, fd, header) &&
		file_symbols__define(&exported, "malloc")) ||
	       has_hidden_names(fd, header);
}
