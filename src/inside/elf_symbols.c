// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Looks dynamic symbols up in files that are not loaded. */
#include "elf_symbols.h"

#include <asm/unistd.h>

#include "symbol_hash.h"
#include "sys.h"

/* How many entries of a dynamic section are read at most. */
#define MAX_ENTRIES 512

/* How many symbols with one hash are looked at in a file: in a damaged file the chain may have no
 * end. */
#define MAX_CHAIN 4096

/* Room for a name; all names that are looked for are shorter. */
#define MAX_NAME 32

/* Finds the file offset of the @size bytes that will be loaded at @address. Returns false if the
 * file does not have them. */
static bool find_offset(const struct file_symbols *in, Elf64_Addr address, size_t size, __u64 *out)
{
	for (int i = 0; i < in->n_loads; i++) {
		__u64 distance = address - in->loads[i].address;

		if (distance < in->loads[i].bytes && size <= in->loads[i].bytes - distance) {
			*out = in->loads[i].offset + distance;
			return true;
		}
	}
	return false;
}

static bool read_memory(const void *memory, Elf64_Addr address, void *out, size_t size)
{
	const struct file_symbols *in = memory;
	__u64 offset;

	return find_offset(in, address, size, &offset) && !sys__read_at(in->fd, out, size, offset);
}

static bool read_segments(struct file_symbols *out, const Elf64_Ehdr *header)
{
	int n = header->e_phnum < ELF_MAX_PROGRAM_HEADERS ? header->e_phnum
							  : ELF_MAX_PROGRAM_HEADERS;

	for (int i = 0; i < n; i++) {
		Elf64_Phdr segment;

		if (sys__read_at(out->fd, &segment, sizeof(segment),
				 header->e_phoff + i * sizeof(segment)))
			return false;
		if (segment.p_type == PT_LOAD && out->n_loads < FILE_SYMBOLS_LOADS) {
			out->loads[out->n_loads].address = segment.p_vaddr;
			out->loads[out->n_loads].bytes = segment.p_filesz;
			out->loads[out->n_loads++].offset = segment.p_offset;
		} else if (segment.p_type == PT_DYNAMIC) {
			out->dynamic = segment.p_offset;
			out->dynamic_bytes = segment.p_filesz;
		}
	}
	return out->dynamic_bytes;
}

static void take_entry(struct file_symbols *out, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		out->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		out->strings = entry->d_un.d_ptr;
		break;
	case DT_GNU_HASH:
		out->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		out->hash = entry->d_un.d_ptr;
		break;
	}
}

bool file_symbols__entry(const struct file_symbols *in, __u32 index, Elf64_Dyn *out)
{
	return index < MAX_ENTRIES && (index + 1) * sizeof(*out) <= in->dynamic_bytes &&
	       !sys__read_at(in->fd, out, sizeof(*out), in->dynamic + index * sizeof(*out)) &&
	       out->d_tag != DT_NULL;
}

bool file_symbols__open(struct file_symbols *out, int fd, const Elf64_Ehdr *header)
{
	Elf64_Dyn entry;

	*out = (struct file_symbols){ .fd = fd };
	if (header->e_phentsize != sizeof(Elf64_Phdr) || !read_segments(out, header))
		return false;
	for (__u32 i = 0; file_symbols__entry(out, i, &entry); i++)
		take_entry(out, &entry);
	return out->strings;
}

void file_symbols__string(const struct file_symbols *in, __u64 offset, char *out, size_t size)
{
	__u64 at;

	memset(out, 0, size);
	/* The segment has at least one byte of the string; the string may end where the file ends. */
	if (find_offset(in, in->strings + offset, 1, &at))
		sys(__NR_pread64, in->fd, (long)out, size - 1, at, 0, 0);
}

static bool symbol__is(const void *memory, __u32 index, const char *name)
{
	const struct file_symbols *in = memory;
	char text[MAX_NAME];
	Elf64_Sym symbol;

	if (!read_memory(in, in->symbols + (__u64)index * sizeof(symbol), &symbol,
			 sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF)
		return false;
	file_symbols__string(in, symbol.st_name, text, sizeof(text));
	return text__equal(text, name);
}

bool file_symbols__define(const struct file_symbols *in, const char *name)
{
	/* Reading a word costs a system call; the filter saves most of them where the symbol is
	 * not there. */
	const struct symbol_hash hash = {
		.gnu_hash = in->gnu_hash,
		.hash = in->hash,
		.max_chain = MAX_CHAIN,
		.read = read_memory,
		.is = symbol__is,
	};

	return in->symbols && symbol_hash__find(&hash, in, name, symbol_name__gnu_hash(name));
}
