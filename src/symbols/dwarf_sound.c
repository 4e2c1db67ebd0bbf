// SPDX-License-Identifier: GPL-3.0-or-later
/* Checks what libdw trusts, before libdw reads it. */
#include <dwarf.h>
#include <string.h>

#include "array.h"
#include "dwarf_cursor.h"
#include "dwarf_internal.h"

/* How many attributes a DIE may have: libdw goes through all of them to find one. Compilers write
 * some twenty. */
#define MAX_ATTRIBUTES 512

/* Returns whether no abbreviation has too many attributes. DWARF 5, section 7.5.3: code, tag,
 * whether there are children; pairs of name and form, and two zeros. A code of 0 ends a table,
 * which another may follow. libdw notices itself if the data are cut off. */
static bool abbreviations_are_short(const Elf_Data *data)
{
	struct dwarf_cursor c = { data->d_buf, (const __u8 *)data->d_buf + data->d_size };

	while (c.pos < c.end) {
		unsigned int n = 0;
		__u64 name, form;

		if (!dwarf_cursor__uleb128(&c))
			continue;
		dwarf_cursor__uleb128(&c);
		dwarf_cursor__u8(&c);
		do {
			name = dwarf_cursor__uleb128(&c);
			form = dwarf_cursor__uleb128(&c);
			if (form == DW_FORM_implicit_const)
				dwarf_cursor__uleb128(&c);
			if (++n > MAX_ATTRIBUTES)
				return false;
		} while (name || form);
	}
	return true;
}

/* Finds the kind of a section by its name without ".debug_" or ".zdebug_", without the ".dwo" of
 * split files, and without the prefix for link time optimization: libdw treats all of these names
 * alike. -1: another section. */
static int find_kind(const char *name)
{
	static const char *const names[DWARF_KINDS] = {
		[DWARF_ABBREVIATIONS] = "abbrev",
		[DWARF_STRINGS] = "str",
		[DWARF_LINE_STRINGS] = "line_str",
		[DWARF_LINES] = "line",
	};
	static const char *const prefixes[] = { ".debug_", ".zdebug_", ".gnu.debuglto_.debug_",
						".gnu.debuglto_.zdebug_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], length))
			continue;
		for (int kind = 0; kind < DWARF_KINDS; kind++) {
			const char *rest = name + length;

			if (strncmp(rest, names[kind], strlen(names[kind])))
				continue;
			rest += strlen(names[kind]);
			if (!*rest || !strcmp(rest, ".dwo"))
				return kind;
		}
	}
	return -1;
}

static bool is_sound(int kind, const Elf_Data *data)
{
	switch (kind) {
	case DWARF_ABBREVIATIONS:
		return abbreviations_are_short(data);
	case DWARF_STRINGS:
	case DWARF_LINE_STRINGS:
		return !((const char *)data->d_buf)[data->d_size - 1];
	default:
		return true;
	}
}

bool dwarf_sound__check(Elf *elf, struct dwarf_sections *sections)
{
	struct dwarf_sections found = { 0 };
	Elf_Scn *section = NULL;
	size_t names;

	*sections = found;
	if (elf_getshdrstrndx(elf, &names))
		return true;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;
		Elf_Data *data;
		int kind;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		kind = name ? find_kind(name) : -1;
		if (kind < 0)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf || !data->d_size)
			continue;
		/* If there are two sections of a kind, libdw uses one of them, and does not tell
		 * which. */
		if (found.data[kind] || !is_sound(kind, data))
			return false;
		found.data[kind] = data;
	}
	*sections = found;
	return true;
}

/* Returns whether a NUL follows in the section that contains @text. */
static bool ends_in_section(Elf *elf, const char *text)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		const char *start;
		Elf_Data *data;

		/* Sections that libdw has not read contain none of its strings. */
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    header.sh_flags & (SHF_ALLOC | SHF_COMPRESSED))
			continue;
		data = elf_rawdata(section, NULL);
		start = data ? data->d_buf : NULL;
		if (start && text >= start && text < start + data->d_size)
			return memchr(text, '\0', start + data->d_size - text);
	}
	return false;
}

/* Sets *@text to the string attribute @name, or to NULL if @die has none. Returns false if the
 * string does not end in its section. */
static bool read_string(Dwarf_Die *die, unsigned int name, const char **text)
{
	Dwarf_Attribute attribute;
	unsigned int form;
	Dwarf *dwarf;

	*text = dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
	if (!*text)
		return true;
	dwarf = dwarf_cu_getdwarf(attribute.cu);
	form = dwarf_whatform(&attribute);
	if (form == DW_FORM_GNU_strp_alt || form == DW_FORM_strp_sup)
		dwarf = dwarf_getalt(dwarf);
	/* libdw 0.188 also returns the end of a section of strings, so the text is checked. */
	return ends_in_section(dwarf_getelf(dwarf), *text);
}

const char *dwarf_sound__string(Dwarf_Die *die, unsigned int name)
{
	const char *text;

	return read_string(die, name, &text) ? text : NULL;
}

bool dwarf_sound__may_read(Dwarf_Die *die, unsigned int name)
{
	const char *text;

	return read_string(die, name, &text);
}

/*
 * Checks headers of line tables (DWARF 5, section 6.2.4). libdw trusts that their strings end in
 * their sections (0.188), and that the header ends in its section (later versions).
 */

#define MAX_FORMS 255

/* This value precedes a length of 64 bits. */
#define LENGTH_IS_64 0xffffffffu

struct header {
	struct dwarf_cursor c; /* the part of it that has not been read */
	bool is_64;	       /* offsets have 64 bits */
	const struct dwarf_sections *sections;
};

static void skip_string(struct dwarf_cursor *c)
{
	const __u8 *end = memchr(c->pos, '\0', c->end - c->pos);

	dwarf_cursor__skip(c, end ? (__u64)(end + 1 - c->pos) : UINT64_MAX);
}

/* Skips an offset into the strings of @kind. */
static bool skip_offset(struct header *header, int kind)
{
	const Elf_Data *data = header->sections->data[kind];
	__u64 offset =
		header->is_64 ? dwarf_cursor__u64(&header->c) : dwarf_cursor__u32(&header->c);

	return data && offset < data->d_size;
}

/* Skips a value. Returns false for forms that no compiler uses here. */
static bool skip_value(struct header *header, __u64 form)
{
	struct dwarf_cursor *c = &header->c;

	switch (form) {
	case DW_FORM_string:
		skip_string(c);
		return true;
	case DW_FORM_line_strp:
		return skip_offset(header, DWARF_LINE_STRINGS);
	case DW_FORM_strp:
		return skip_offset(header, DWARF_STRINGS);
	case DW_FORM_udata:
		dwarf_cursor__uleb128(c);
		return true;
	case DW_FORM_block:
		dwarf_cursor__skip(c, dwarf_cursor__uleb128(c));
		return true;
	case DW_FORM_data1:
		dwarf_cursor__skip(c, 1);
		return true;
	case DW_FORM_data2:
		dwarf_cursor__skip(c, 2);
		return true;
	case DW_FORM_data4:
		dwarf_cursor__skip(c, 4);
		return true;
	case DW_FORM_data8:
		dwarf_cursor__skip(c, 8);
		return true;
	case DW_FORM_data16:
		dwarf_cursor__skip(c, 16);
		return true;
	default:
		return false;
	}
}

/* Skips directories or files since DWARF 5: kinds of content and their forms, and values of these
 * for each entry. */
static bool skip_entries(struct header *header)
{
	struct dwarf_cursor *c = &header->c;
	__u64 forms[MAX_FORMS], n;
	unsigned int n_forms = dwarf_cursor__u8(c);

	for (unsigned int i = 0; i < n_forms; i++) {
		dwarf_cursor__uleb128(c);
		forms[i] = dwarf_cursor__uleb128(c);
	}
	n = dwarf_cursor__uleb128(c);
	if (n && !n_forms)
		return false;
	for (; n && !c->bad; n--)
		for (unsigned int i = 0; i < n_forms; i++)
			if (!skip_value(header, forms[i]))
				return false;
	return true;
}

/* Skips the same before DWARF 5: strings, the last of which is empty. A file has three numbers,
 * too. */
static void skip_old_entries(struct dwarf_cursor *c, unsigned int n_numbers)
{
	while (c->pos < c->end && *c->pos) {
		skip_string(c);
		for (unsigned int i = 0; i < n_numbers; i++)
			dwarf_cursor__uleb128(c);
	}
	dwarf_cursor__u8(c);
}

static __u64 read_length(struct dwarf_cursor *c, bool *is_64)
{
	__u32 length = dwarf_cursor__u32(c);

	*is_64 = length == LENGTH_IS_64;
	return *is_64 ? dwarf_cursor__u64(c) : length;
}

/* Limits @c to the @size bytes from its offset on. */
static void cut(struct dwarf_cursor *c, __u64 size)
{
	struct dwarf_cursor rest = *c;

	dwarf_cursor__skip(&rest, size);
	c->end = rest.pos;
	c->bad = rest.bad;
}

bool dwarf_lines__are_sound(const struct dwarf_sections *sections, __u64 offset, __u64 *size_bytes)
{
	const Elf_Data *data = sections->data[DWARF_LINES];
	struct header header = { .sections = sections };
	struct dwarf_cursor *c = &header.c;
	unsigned int version, n_opcodes;
	__u64 size;

	if (!data)
		return false;
	*c = (struct dwarf_cursor){ data->d_buf, (const __u8 *)data->d_buf + data->d_size };
	dwarf_cursor__skip(c, offset);
	size = read_length(c, &header.is_64);
	cut(c, size);
	version = dwarf_cursor__u16(c);
	/* Skips the sizes of addresses and of segment selectors. */
	if (version >= 5)
		dwarf_cursor__skip(c, 2);
	cut(c, header.is_64 ? dwarf_cursor__u64(c) : dwarf_cursor__u32(c));
	/* Skips the least length of an instruction, the number of operations, whether lines are
	 * statements, and two numbers about lines. */
	dwarf_cursor__skip(c, version >= 4 ? 5 : 4);
	n_opcodes = dwarf_cursor__u8(c);
	if (c->bad || version < 2 || version > 5 || !n_opcodes)
		return false;
	dwarf_cursor__skip(c, n_opcodes - 1);
	if (version >= 5) {
		if (!skip_entries(&header) || !skip_entries(&header))
			return false;
	} else {
		skip_old_entries(c, 0);
		skip_old_entries(c, 3);
	}
	if (c->bad)
		return false;
	*size_bytes = size;
	return true;
}
