// SPDX-License-Identifier: GPL-3.0-or-later
/* Bytes of an ELF file that are changed at random are mostly code; this chooses a header, or a section and a place in it. */
#include <elf.h>
#include <string.h>

#include "fuzz.h"

static uint32_t state;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static uint64_t edge(void)
{
	static const uint64_t edges[] = { 0,	  1,	      2,	  3,	      7,
					  8,	  0x7f,	      0x80,	  0xff,	      0x7fff,
					  0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32,
					  ~0ULL,  ~0ULL >> 1, ~0ULL << 3, 1ULL << 63 };

	return edges[below(sizeof(edges) / sizeof(*edges))];
}

static void change(uint8_t *data, size_t size)
{
	for (int n = 1 + below(6); n && size; n--) {
		size_t at = below(size), width = 1U << below(4), from;
		uint64_t value = edge();

		switch (below(5)) {
		case 0:
			data[at] ^= 1U << below(8);
			break;
		case 1:
			data[at] += below(9) - 4;
			break;
		case 2:
			data[at] = below(256);
			break;
		case 3:
			if (width <= size - at)
				memcpy(data + at, &value, width);
			break;
		case 4:
			from = below(size);
			width = 1 + below(16);
			if (width <= size - at && width <= size - from)
				memmove(data + at, data + from, width);
			break;
		}
	}
}

static void change_type(uint8_t *header)
{
	static const uint32_t types[] = { SHT_NOTE,    SHT_SYMTAB, SHT_DYNSYM,	   SHT_RELA,
					  SHT_DYNAMIC, SHT_STRTAB, SHT_GNU_versym, SHT_NOBITS };
	Elf64_Shdr section;

	memcpy(&section, header, sizeof(section));
	section.sh_type = types[below(sizeof(types) / sizeof(*types))];
	section.sh_flags ^= below(4) ? 0 : SHF_COMPRESSED;
	memcpy(header, &section, sizeof(section));
}

static void change_section(uint8_t *data, size_t size, const Elf64_Ehdr *header)
{
	uint8_t *at = data + header->e_shoff + below(header->e_shnum) * sizeof(Elf64_Shdr);
	Elf64_Shdr section;

	memcpy(&section, at, sizeof(section));
	switch (below(8)) {
	case 0:
		change(at, sizeof(section));
		break;
	case 1:
		change_type(at);
		break;
	default:
		if (section.sh_type != SHT_NOBITS && section.sh_offset < size &&
		    section.sh_size <= size - section.sh_offset)
			change(data + section.sh_offset, section.sh_size);
	}
}

size_t elf_mutator__mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	Elf64_Ehdr header;

	state = seed | 1;
	if (size < sizeof(header) || memcmp(data, ELFMAG, SELFMAG) || !below(16))
		return LLVMFuzzerMutate(data, size, max_size);
	for (int n = 1 + below(3); n; n--) {
		memcpy(&header, data, sizeof(header));
		if (!below(12))
			change(data + EI_NIDENT, sizeof(header) - EI_NIDENT);
		else if (!below(12) && header.e_phoff < size)
			change(data + header.e_phoff, (size - header.e_phoff) % 1024);
		else if (header.e_shnum && header.e_shoff < size &&
			 header.e_shnum <= (size - header.e_shoff) / sizeof(Elf64_Shdr))
			change_section(data, size, &header);
		else
			change(data, size);
	}
	return size;
}
