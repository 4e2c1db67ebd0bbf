// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Headers of line tables (DWARF 5, section 6.2.4), of which libdw believes that their strings end in their sections
 * (0.188), and that the header ends in its section (later versions).
 */
#include <dwarf.h>
#include <string.h>

#include "dwarf_cursor.h"
#include "dwarf_sound.h"

#define MAX_FORMS 255

/* Begins a length of 64 bits. */
#define LENGTH_IS_64 0xffffffffu

struct header {
	struct dwarf_cursor c; /* what is left of it */
	bool is_64;	       /* offsets have 64 bits */
	const struct dwarf_sections *sections;
};

static void skip_string(struct dwarf_cursor *c)
{
	const __u8 *end = memchr(c->pos, '\0', c->end - c->pos);

	dwarf_cursor__skip(c, end ? (__u64)(end + 1 - c->pos) : UINT64_MAX);
}

/* An offset into the strings of @kind. */
static bool skip_offset(struct header *header, int kind)
{
	const Elf_Data *data = header->sections->data[kind];
	__u64 offset =
		header->is_64 ? dwarf_cursor__u64(&header->c) : dwarf_cursor__u32(&header->c);

	return data && offset < data->d_size;
}

/* False for forms that no compiler uses here. */
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

/* Directories or files since DWARF 5: kinds of content and their forms, and values of these for each entry. */
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

/* The same before DWARF 5: strings, the last of which is empty. Of a file there are three numbers more. */
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

/* @c becomes what follows in the @size bytes from its place on. */
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
	/* The sizes of addresses and of segment selectors. */
	if (version >= 5)
		dwarf_cursor__skip(c, 2);
	cut(c, header.is_64 ? dwarf_cursor__u64(c) : dwarf_cursor__u32(c));
	/* The least length of an instruction, how many it has, whether lines are statements, two numbers about lines. */
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
