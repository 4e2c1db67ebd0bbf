/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks of what libdw takes on trust, before it reads that. */
#ifndef ALLOCPROF_DWARF_SOUND_H
#define ALLOCPROF_DWARF_SOUND_H

#include <elfutils/libdw.h>
#include <linux/types.h>
#include <stdbool.h>

enum dwarf_kind {
	DWARF_ABBREVIATIONS, /* .debug_abbrev */
	DWARF_STRINGS,	     /* .debug_str */
	DWARF_LINE_STRINGS,  /* .debug_line_str */
	DWARF_LINES,	     /* .debug_line */
	DWARF_KINDS
};

/* The sections of a file, borrowed from its Elf; NULL: none. */
struct dwarf_sections {
	const Elf_Data *data[DWARF_KINDS];
};

/*
 * Returns whether the file has one section of each kind at the most, all strings end in theirs, and no abbreviation is longer than
 * any compiler's: for ELF files whose sections libdw has unpacked.
 */
bool dwarf_sound__check(Elf *elf, struct dwarf_sections *sections);

/* The string attribute @name, which ends in its section; NULL if @die has none. */
const char *dwarf_sound__string(Dwarf_Die *die, unsigned int name);

/* False if @die has a string attribute @name that does not end in its section. */
bool dwarf_sound__may_read(Dwarf_Die *die, unsigned int name);

/*
 * Returns whether the header of the line table at @offset ends in its section, and all of its strings in theirs. Sets *@size_bytes to
 * the table's size.
 */
bool dwarf_lines__are_sound(const struct dwarf_sections *sections, __u64 offset, __u64 *size_bytes);

#endif
