// SPDX-License-Identifier: GPL-3.0-or-later
#include "go_table.h"

#include <errno.h>
#include <string.h>

#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1

/* The largest known programs have 60 MiB. */
#define MAX_TABLE_BYTES (1ULL << 29)

/* Indexes of words in the header behind its first eight bytes, and the header's size. */
enum {
	HEADER_FUNCTIONS,
	HEADER_FILES,
	HEADER_TEXT_START,
	HEADER_NAMES,
	HEADER_UNITS,
	HEADER_FILE_NAMES,
	HEADER_DEPTHS, /* table of values that vary by pc */
	HEADER_TABLE,
	HEADER_WORDS,
};
#define HEADER_BYTES (8 + HEADER_WORDS * 8)

/* Offsets in struct _func of runtime/runtime2.go. */
#define FUNCTION_NAME	 4
#define FUNCTION_DEPTHS	 16
#define FUNCTION_FLAG	 37
#define START_LINE_BYTES 4
#define FLAG_OUTERMOST	 1 /* abi.FuncFlagTopFrame */
#define MAX_NAME_BYTES	 4096

static Elf_Scn *find_section(Elf *elf, const char *const *names, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, strings, header->sh_name);
		for (size_t i = 0; name && names[i]; i++)
			if (!strcmp(name, names[i]))
				return section;
	}
	return NULL;
}

bool go_table__is_go(Elf *elf)
{
	static const char *const names[] = { ".go.buildinfo", ".note.go.buildid", ".gopclntab",
					     NULL };
	GElf_Shdr header;

	return find_section(elf, names, &header);
}

static __u32 u32_at(const __u8 *at)
{
	__u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static __u64 header_word(const __u8 *data, int word)
{
	__u64 value;

	memcpy(&value, data + 8 + word * 8, sizeof(value));
	return value;
}

/* Returns the addend of the relative relocation for @vaddr; 0: there is none. */
static __u64 relocated(Elf *elf, __u64 vaddr)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;
		GElf_Rela rela;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
		    !(header.sh_flags & SHF_ALLOC) || header.sh_size > MAX_TABLE_BYTES)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
			if (rela.r_offset == vaddr && !GELF_R_SYM(rela.r_info))
				return rela.r_addend;
	}
	return 0;
}

/* Checks the magic number, two zeros, the pc quantum, and the pointer size. */
static bool is_header(const __u8 *data)
{
	__u32 magic = u32_at(data);

	return (magic == MAGIC_1_18 || magic == MAGIC_1_20) && !data[4] && !data[5] &&
	       data[6] == 1 && data[7] == 8;
}

/* Returns the data from the table on, and stores its vaddr. NULL: the file has none. */
static const __u8 *find_table(Elf *elf, size_t *size, __u64 *vaddr)
{
	static const char *const names[] = { ".gopclntab", NULL };
	/* In position-independent programs ld puts the table among other data. */
	static const char *const among[] = { ".data.rel.ro.gopclntab", ".data.rel.ro", NULL };
	GElf_Shdr header;
	Elf_Scn *section = find_section(elf, names, &header);
	Elf_Data *data;

	if (!section && go_table__is_go(elf))
		section = find_section(elf, among, &header);
	if (!section || (header.sh_flags & SHF_COMPRESSED) || header.sh_size > MAX_TABLE_BYTES)
		return NULL;
	data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf)
		return NULL;
	for (size_t at = 0; at < data->d_size && data->d_size - at >= HEADER_BYTES; at += 8) {
		const __u8 *found = (const __u8 *)data->d_buf + at;

		if (!is_header(found))
			continue;
		*size = data->d_size - at;
		*vaddr = header.sh_addr + at;
		return found;
	}
	return NULL;
}

int go_table__open(Elf *elf, struct go_table *out)
{
	struct go_table table = { 0 };
	__u64 count, vaddr;

	table.data = find_table(elf, &table.size, &vaddr);
	if (!table.data)
		return -ENOENT;
	table.has_start_line = u32_at(table.data) == MAGIC_1_20;
	table.text_start = header_word(table.data, HEADER_TEXT_START);
	if (!table.text_start)
		table.text_start = relocated(elf, vaddr + 8 + HEADER_TEXT_START * 8);
	table.names = header_word(table.data, HEADER_NAMES);
	table.depths = header_word(table.data, HEADER_DEPTHS);
	table.functions = header_word(table.data, HEADER_TABLE);
	count = header_word(table.data, HEADER_FUNCTIONS);
	/* The function table has pairs of 32-bit values, and ends with the end of the last
	 * function. */
	if (!table.text_start || table.names > table.size || table.depths > table.size ||
	    table.functions > table.size || table.size - table.functions < 4 ||
	    count > (table.size - table.functions - 4) / 8)
		return -ENOENT;
	table.count = (__u32)count;
	*out = table;
	return 0;
}

bool go_table__function(const struct go_table *table, __u32 index, struct go_function *out)
{
	const __u8 *entry = table->data + table->functions + (size_t)index * 8;
	size_t room = table->size - table->functions, flag, name_room;
	__u32 at = u32_at(entry + 4), name, depths;
	const __u8 *function;

	flag = FUNCTION_FLAG + (table->has_start_line ? START_LINE_BYTES : 0);
	if (at >= room || room - at <= flag)
		return false;
	function = table->data + table->functions + at;
	out->lo = table->text_start + u32_at(entry);
	out->hi = table->text_start + u32_at(entry + 8);
	if (out->lo >= out->hi)
		return false;
	name = u32_at(function + FUNCTION_NAME);
	if (name >= table->size - table->names)
		return false;
	out->name = (const char *)table->data + table->names + name;
	name_room = table->size - table->names - name;
	out->name_size =
		strnlen(out->name, name_room < MAX_NAME_BYTES ? name_room : MAX_NAME_BYTES);
	depths = u32_at(function + FUNCTION_DEPTHS);
	out->depths = NULL;
	out->depths_end = table->data + table->size;
	if (depths && depths < table->size - table->depths)
		out->depths = table->data + table->depths + depths;
	out->outermost = function[flag] & FLAG_OUTERMOST;
	return true;
}

struct go_depths go_depths__begin(const struct go_function *function)
{
	return (struct go_depths){
		.at = function->depths,
		.end = function->depths ? function->depths_end : NULL,
		.lo = function->lo,
		.hi = function->lo,
		.depth_bytes = -1,
	};
}

static bool read_uvarint(struct go_depths *depths, __u32 *out)
{
	__u32 value = 0;

	for (int shift = 0; shift < 32 && depths->at < depths->end; shift += 7) {
		__u8 byte = *depths->at++;

		value |= (__u32)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

/* Reads a pc-value table: pairs of a zigzag-encoded change of depth and a pc delta. A change of 0
 * ends it, as does a delta beyond the end of all addresses. */
bool go_depths__next(struct go_depths *depths)
{
	__u32 change, bytes;

	if (!read_uvarint(depths, &change) || (!change && depths->began) ||
	    !read_uvarint(depths, &bytes) || !bytes || bytes > ~depths->hi)
		return false;
	depths->began = true;
	depths->depth_bytes += change & 1 ? ~(__s64)(change >> 1) : (__s64)(change >> 1);
	depths->lo = depths->hi;
	depths->hi += bytes;
	return true;
}
