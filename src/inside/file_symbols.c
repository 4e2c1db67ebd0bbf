// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "file_symbols.h"

#include <asm/unistd.h>

#include "sys.h"

/* Bounds on what a damaged file can have us read. */
#define MAX_PROGRAM_HEADERS 64
#define MAX_ENTRIES	    512
#define MAX_CHAIN	    4096

/* All names that are looked for are shorter. */
#define MAX_NAME 32

/* The offset of @size bytes that will be at @address; false if the file does not have them. */
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

static bool read_memory(const struct file_symbols *in, Elf64_Addr address, void *out, size_t size)
{
	__u64 offset;

	return find_offset(in, address, size, &offset) && !sys__read_at(in->fd, out, size, offset);
}

static bool read_word(const struct file_symbols *in, Elf64_Addr array, __u64 index, __u32 *out)
{
	return read_memory(in, array + index * sizeof(*out), out, sizeof(*out));
}

static bool read_segments(struct file_symbols *out, const Elf64_Ehdr *header)
{
	int n = header->e_phnum < MAX_PROGRAM_HEADERS ? header->e_phnum : MAX_PROGRAM_HEADERS;

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
	/* One byte is in the segment; the string may end with the file. */
	if (find_offset(in, in->strings + offset, 1, &at))
		sys(__NR_pread64, in->fd, (long)out, size - 1, at, 0, 0);
}

static bool symbol__is(const struct file_symbols *in, __u32 index, const char *name)
{
	char text[MAX_NAME];
	Elf64_Sym symbol;

	if (!read_memory(in, in->symbols + (__u64)index * sizeof(symbol), &symbol,
			 sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF)
		return false;
	file_symbols__string(in, symbol.st_name, text, sizeof(text));
	return text__equal(text, name);
}

/* The Bloom filter in front of the buckets: false if no symbol has that hash. */
static bool may_have(const struct file_symbols *in, Elf64_Addr words, const __u32 head[4],
		     __u32 hash)
{
	__u64 word;

	return head[2] &&
	       read_memory(in, words + hash / 64 % head[2] * sizeof(word), &word, sizeof(word)) &&
	       word >> hash % 64 & word >> (hash >> (head[3] & 31)) % 64 & 1;
}

static bool find_by_gnu_hash(const struct file_symbols *in, const char *name)
{
	__u32 head[4], index, value, hash = text__gnu_hash(name); /* buckets, first, words, shift */
	Elf64_Addr words = in->gnu_hash + sizeof(head), buckets, chains;

	if (!read_memory(in, in->gnu_hash, head, sizeof(head)) || !head[0] ||
	    !may_have(in, words, head, hash))
		return false;
	buckets = words + (__u64)head[2] * sizeof(__u64);
	chains = buckets + (__u64)head[0] * sizeof(__u32);
	if (!read_word(in, buckets, hash % head[0], &index) || index < head[1])
		return false;
	for (int i = 0; i < MAX_CHAIN && read_word(in, chains, index - head[1], &value); i++) {
		if ((value | 1) == (hash | 1) && symbol__is(in, index, name))
			return true;
		if (value & 1)
			break;
		index++;
	}
	return false;
}

static bool find_by_hash(const struct file_symbols *in, const char *name)
{
	__u32 head[2], index;
	Elf64_Addr buckets = in->hash + sizeof(head);

	if (!read_memory(in, in->hash, head, sizeof(head)) || !head[0] ||
	    !read_word(in, buckets, text__sysv_hash(name) % head[0], &index))
		return false;
	for (int i = 0; i < MAX_CHAIN && index; i++) {
		if (symbol__is(in, index, name))
			return true;
		if (!read_word(in, buckets, (__u64)head[0] + index, &index))
			break;
	}
	return false;
}

bool file_symbols__define(const struct file_symbols *in, const char *name)
{
	if (!in->symbols)
		return false;
	return in->gnu_hash ? find_by_gnu_hash(in, name) : in->hash && find_by_hash(in, name);
}
