// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sanitizer.h"

#include <asm/unistd.h>

#include "refusal_abi.h"
#include "sys.h"

#define MAX_PROGRAM_HEADERS 64
#define MAX_LOADS	    16
#define MAX_DYNAMIC	    512
#define NAME_BYTES	    32

/* The dynamic section as the file has it. It is on the stack of a child of vfork(2), which may be small. */
struct dynamic {
	int fd, n_loads;
	__u64 at, bytes;
	__u64 symbols, strings, gnu_hash; /* offsets in the file; 0: none */
	struct {
		__u64 address, bytes, offset;
	} loads[MAX_LOADS];
};

static bool begins_as_library(const char *name)
{
#define BEGINS(text)                                                                               \
	if (text__begins(name, text))                                                              \
		return true;
	SANITIZER_LIBRARIES(BEGINS)
#undef BEGINS
	return false;
}

static __u64 offset_of(const struct dynamic *dynamic, __u64 address)
{
	for (int i = 0; i < dynamic->n_loads; i++) {
		__u64 distance = address - dynamic->loads[i].address;

		if (distance < dynamic->loads[i].bytes)
			return dynamic->loads[i].offset + distance;
	}
	return 0;
}

static bool read_segments(struct dynamic *out, const Elf64_Ehdr *header)
{
	int n = header->e_phnum < MAX_PROGRAM_HEADERS ? header->e_phnum : MAX_PROGRAM_HEADERS;

	for (int i = 0; i < n; i++) {
		Elf64_Phdr segment;

		if (sys__read_at(out->fd, &segment, sizeof(segment),
				 header->e_phoff + i * sizeof(segment)))
			return false;
		if (segment.p_type == PT_LOAD && out->n_loads < MAX_LOADS) {
			out->loads[out->n_loads].address = segment.p_vaddr;
			out->loads[out->n_loads].bytes = segment.p_filesz;
			out->loads[out->n_loads++].offset = segment.p_offset;
		} else if (segment.p_type == PT_DYNAMIC) {
			out->at = segment.p_offset;
			out->bytes = segment.p_filesz;
		}
	}
	return out->bytes;
}

static bool read_entry(const struct dynamic *dynamic, __u32 index, Elf64_Dyn *out)
{
	return index < MAX_DYNAMIC && (index + 1) * sizeof(*out) <= dynamic->bytes &&
	       !sys__read_at(dynamic->fd, out, sizeof(*out), dynamic->at + index * sizeof(*out)) &&
	       out->d_tag != DT_NULL;
}

/* A name of which the file's end may cut a part off. */
static void read_name(const struct dynamic *dynamic, __u64 at, char name[NAME_BYTES])
{
	memset(name, 0, NAME_BYTES);
	sys(__NR_pread64, dynamic->fd, (long)name, NAME_BYTES - 1, dynamic->strings + at, 0, 0);
}

static bool needs_library(const struct dynamic *dynamic)
{
	char name[NAME_BYTES];
	Elf64_Dyn entry;

	for (__u32 i = 0; read_entry(dynamic, i, &entry); i++) {
		if (entry.d_tag != DT_NEEDED)
			continue;
		read_name(dynamic, entry.d_un.d_val, name);
		if (begins_as_library(name))
			return true;
	}
	return false;
}

/* Longer chains are not followed: one that is damaged ends. */
#define MAX_CHAIN 256

static bool defines(const struct dynamic *dynamic, const char *function)
{
	struct {
		__u32 n_buckets, first, n_words, shift;
	} table;
	__u32 hash = text__gnu_hash(function), index, of_this;
	__u64 word, words = dynamic->gnu_hash + sizeof(table), chains;
	char name[NAME_BYTES];

	if (sys__read_at(dynamic->fd, &table, sizeof(table), dynamic->gnu_hash) ||
	    !table.n_buckets || !table.n_words ||
	    sys__read_at(dynamic->fd, &word, sizeof(word),
			 words + hash / 64 % table.n_words * sizeof(word)))
		return false;
	if (!(word >> hash % 64 & word >> (hash >> (table.shift & 31)) % 64 & 1))
		return false;
	words += (__u64)table.n_words * sizeof(word);
	chains = words + (__u64)table.n_buckets * sizeof(index);
	if (sys__read_at(dynamic->fd, &index, sizeof(index),
			 words + (__u64)(hash % table.n_buckets) * sizeof(index)) ||
	    index < table.first)
		return false;
	for (int i = 0; i < MAX_CHAIN; i++, index++) {
		Elf64_Sym symbol;

		if (sys__read_at(dynamic->fd, &of_this, sizeof(of_this),
				 chains + (__u64)(index - table.first) * sizeof(of_this)))
			return false;
		if ((of_this | 1) == (hash | 1) &&
		    !sys__read_at(dynamic->fd, &symbol, sizeof(symbol),
				  dynamic->symbols + (__u64)index * sizeof(symbol))) {
			read_name(dynamic, symbol.st_name, name);
			if (symbol.st_shndx != SHN_UNDEF && text__equal(name, function))
				return true;
		}
		if (of_this & 1)
			return false;
	}
	return false;
}

static bool defines_function(const struct dynamic *dynamic)
{
#define DEFINES(name)                                                                              \
	if (defines(dynamic, name))                                                                \
		return true;
	SANITIZER_FUNCTIONS(DEFINES)
#undef DEFINES
	return false;
}

bool sanitizer__is_in(int fd, const Elf64_Ehdr *header)
{
	struct dynamic dynamic = { .fd = fd };
	Elf64_Dyn entry;

	if (!read_segments(&dynamic, header))
		return false;
	for (__u32 i = 0; read_entry(&dynamic, i, &entry); i++) {
		if (entry.d_tag == DT_STRTAB)
			dynamic.strings = offset_of(&dynamic, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_SYMTAB)
			dynamic.symbols = offset_of(&dynamic, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_GNU_HASH)
			dynamic.gnu_hash = offset_of(&dynamic, entry.d_un.d_ptr);
	}
	if (!dynamic.strings)
		return false;
	return needs_library(&dynamic) ||
	       (dynamic.symbols && dynamic.gnu_hash && defines_function(&dynamic));
}

bool sanitizer__is_preloaded(const char *value)
{
	for (bool begins = true; *value; value++) {
		if (begins && begins_as_library(value))
			return true;
		begins = *value == '/' || *value == ':' || *value == ' ';
	}
	return false;
}
