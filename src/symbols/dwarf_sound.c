// SPDX-License-Identifier: GPL-3.0-or-later
/* What libdw 0.188 takes on trust: that strings end in their sections, and that abbreviations are short. */
#include <dwarf.h>
#include <string.h>

#include "array.h"
#include "dwarf_internal.h"

/* A DIE with more is refused: libdw goes through all of them to find one. Compilers write some twenty. */
#define MAX_ATTRIBUTES 512

struct bytes {
	const unsigned char *at, *end;
};

static bool read_uleb(struct bytes *bytes, __u64 *value)
{
	*value = 0;
	for (unsigned int shift = 0; bytes->at < bytes->end && shift < 70; shift += 7) {
		unsigned char byte = *bytes->at++;

		if (shift < 64)
			*value |= (__u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* DWARF 5, section 7.5.3: code, tag, whether there are children; pairs of name and form, and two zeros. A code of 0
 * ends a table, which another may follow. */
static bool abbreviations_are_short(struct bytes bytes)
{
	__u64 code, value, name, form;

	while (bytes.at < bytes.end) {
		unsigned int n = 0;

		/* libdw finds out by itself what is cut off. */
		if (!read_uleb(&bytes, &code))
			return true;
		if (!code)
			continue;
		if (!read_uleb(&bytes, &value) || bytes.at++ >= bytes.end)
			return true;
		do {
			if (!read_uleb(&bytes, &name) || !read_uleb(&bytes, &form) ||
			    (form == DW_FORM_implicit_const && !read_uleb(&bytes, &value)))
				return true;
			if (++n > MAX_ATTRIBUTES)
				return false;
		} while (name || form);
	}
	return true;
}

static bool is_any(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

bool dwarf_sound__check(Elf *elf)
{
	static const char *const strings[] = { ".debug_str",	  ".debug_line_str",
					       ".debug_str.dwo",  ".debug_line_str.dwo",
					       ".zdebug_str",	  ".zdebug_line_str",
					       ".zdebug_str.dwo", NULL };
	static const char *const abbreviations[] = { ".debug_abbrev", ".debug_abbrev.dwo",
						     ".zdebug_abbrev", ".zdebug_abbrev.dwo", NULL };
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return true;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || (!is_any(name, strings) && !is_any(name, abbreviations)))
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf || !data->d_size)
			continue;
		if (is_any(name, strings)
			    ? ((char *)data->d_buf)[data->d_size - 1] != '\0'
			    : !abbreviations_are_short((struct bytes){
				      data->d_buf, (unsigned char *)data->d_buf + data->d_size }))
			return false;
	}
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

const char *dwarf_sound__string(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	unsigned int form;
	const char *text;
	Dwarf *dwarf;

	if (!dwarf_attr(die, name, &attribute))
		return NULL;
	text = dwarf_formstring(&attribute);
	if (!text)
		return NULL;
	dwarf = dwarf_cu_getdwarf(attribute.cu);
	form = dwarf_whatform(&attribute);
	if (form == DW_FORM_GNU_strp_alt || form == DW_FORM_strp_sup)
		dwarf = dwarf_getalt(dwarf);
	/* libdw 0.188 also returns the end of a section of strings. */
	return ends_in_section(dwarf_getelf(dwarf), text) ? text : NULL;
}
