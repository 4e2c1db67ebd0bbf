// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Looks malloc up in a program's file, as the dynamic linker will in its memory, and among all of its symbols. */
#include "own_malloc.h"

#include "sys.h"

/* Bounds on what a damaged file can have us read. */
#define MAX_PROGRAM_HEADERS 64
#define MAX_ENTRIES	    512
#define MAX_CHAIN	    4096
#define MAX_READS	    16384

static const char name[] = "malloc";

struct file {
	int fd;
	const Elf64_Ehdr *header;
	Elf64_Addr symbols, strings, gnu_hash, hash; /* 0: there is none */
	__u32 n_reads; /* of segments, which all reading begins with */
};

static bool read_segment(struct file *file, int index, Elf64_Phdr *segment)
{
	return index < file->header->e_phnum && index < MAX_PROGRAM_HEADERS &&
	       file->n_reads++ < MAX_READS &&
	       !sys__read_at(file->fd, segment, sizeof(*segment),
			     file->header->e_phoff + index * sizeof(*segment));
}

/* Reads what will be at @address of the program. */
static bool read_memory(struct file *file, Elf64_Addr address, void *out, size_t size)
{
	Elf64_Phdr segment;

	for (int i = 0; read_segment(file, i, &segment); i++)
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    address - segment.p_vaddr < segment.p_filesz &&
		    size <= segment.p_filesz - (address - segment.p_vaddr))
			return !sys__read_at(file->fd, out, size,
					     segment.p_offset + (address - segment.p_vaddr));
	return false;
}

static bool read_word(struct file *file, Elf64_Addr array, __u64 index, __u32 *out)
{
	return read_memory(file, array + index * sizeof(*out), out, sizeof(*out));
}

static void take_entry(struct file *file, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		file->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		file->strings = entry->d_un.d_ptr;
		break;
	case DT_GNU_HASH:
		file->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		file->hash = entry->d_un.d_ptr;
		break;
	}
}

static bool read_dynamic(struct file *file)
{
	Elf64_Phdr segment;
	Elf64_Dyn entry;
	int i = 0;

	do {
		if (!read_segment(file, i++, &segment))
			return false;
	} while (segment.p_type != PT_DYNAMIC);
	for (i = 0; i < MAX_ENTRIES; i++) {
		if ((i + 1) * sizeof(entry) > segment.p_filesz ||
		    sys__read_at(file->fd, &entry, sizeof(entry),
				 segment.p_offset + i * sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		take_entry(file, &entry);
	}
	return file->symbols && file->strings;
}

static bool is_malloc(struct file *file, __u32 index)
{
	char text[sizeof(name)];
	Elf64_Sym symbol;

	return read_memory(file, file->symbols + (__u64)index * sizeof(symbol), &symbol,
			   sizeof(symbol)) &&
	       symbol.st_shndx != SHN_UNDEF &&
	       read_memory(file, file->strings + symbol.st_name, text, sizeof(text)) &&
	       !text[sizeof(text) - 1] && text__equal(text, name);
}

static bool find_gnu(struct file *file)
{
	__u32 head[4], index, value, hash = 5381;
	Elf64_Addr buckets, chains;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	if (!read_memory(file, file->gnu_hash, head, sizeof(head)) || !head[0])
		return false;
	buckets = file->gnu_hash + sizeof(head) + (__u64)head[2] * sizeof(__u64);
	chains = buckets + (__u64)head[0] * sizeof(__u32);
	if (!read_word(file, buckets, hash % head[0], &index) || index < head[1])
		return false;
	for (int i = 0; i < MAX_CHAIN && read_word(file, chains, index - head[1], &value); i++) {
		if ((value | 1) == (hash | 1) && is_malloc(file, index))
			return true;
		if (value & 1)
			break;
		index++;
	}
	return false;
}

static bool find_old(struct file *file)
{
	__u32 head[2], index, hash = 0;
	Elf64_Addr buckets = file->hash + sizeof(head);

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash ^= (hash & 0xf0000000) >> 24;
		hash &= 0x0fffffff;
	}
	if (!read_memory(file, file->hash, head, sizeof(head)) || !head[0] ||
	    !read_word(file, buckets, hash % head[0], &index))
		return false;
	for (int i = 0; i < MAX_CHAIN && index; i++) {
		if (is_malloc(file, index))
			return true;
		if (!read_word(file, buckets, (__u64)head[0] + index, &index))
			break;
	}
	return false;
}

static bool has_exported(int fd, const Elf64_Ehdr *header)
{
	struct file file = { .fd = fd, .header = header };

	if (header->e_phentsize != sizeof(Elf64_Phdr) || !read_dynamic(&file))
		return false;
	return file.gnu_hash ? find_gnu(&file) : file.hash && find_old(&file);
}

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
	return has_exported(fd, header) || has_hidden_names(fd, header);
}
