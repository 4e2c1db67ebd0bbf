// SPDX-License-Identifier: GPL-3.0-or-later
#include "dwarf_sound.h"

#include <dwarf.h>
#include <string.h>

#include "array.h"
#include "dwarf_cursor.h"

/* A DIE with more is refused: libdw goes through all of them to find one. Compilers write some twenty. */
#define MAX_ATTRIBUTES 512

/* DWARF 5, section 7.5.3: code, tag, whether there are children; pairs of name and form, and two zeros. A code of 0
 * ends a table, which another may follow. libdw finds out by itself what is cut off. */
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

/* Finds the kind of a section by its name without ".debug_" or ".zdebug_", without the ".dwo" of split files, and without the
 * prefix for link time optimization: libdw takes all of these names for the same. -1: another section. */
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
		/* Which of two libdw takes depends on more than their names. */
		if (found.data[kind] || !is_sound(kind, data))
			return false;
		found.data[kind] = data;
	}
	*sections = found;
	return true;
}

/* Whether a NUL follows in the section that @text is in. */
static bool ends_in_section(Elf *elf, const char *text)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		const char *start;
		Elf_Data *data;

		/* Sections that libdw has not read hold none of its strings. */
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

/* Sets *@text to the string attribute @name, or to NULL if @die has none. False if it does not end in its section. */
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
	/* libdw 0.188 also returns the end of a section of strings. */
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
