// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python_table.h"

/* Lines. A table has an entry for each run of instructions: a byte with its bit 7 set, the kind of entry in four bits and
 * the number of instructions less 1 in three, and what the kind says, in which bit 7 is not set. */

enum {
	ENTRY_LONG = 14,
	ENTRY_NO_COLUMNS = 13,
	ENTRY_NO_LINE = 15,
	ENTRY_FIRST_DELTA = 10, /* the line is that of the last entry and this number less 10 */
};

#define INSTRUCTION_BYTES 2

struct line_reader {
	const struct python_table *table;
	__u32 at;
	__u64 word;
	__u64 word_address;
};

/* Returns the byte at @at; -1 behind the last one, and if it cannot be read. */
static int line_reader__peek(struct line_reader *in)
{
	__u64 address = in->table->address + in->at, aligned = address & ~7ULL;

	if (in->at >= in->table->n_bytes)
		return -1;
	if (aligned != in->word_address) {
		if (!in->table->load(in->table->context, aligned, &in->word))
			return -1;
		in->word_address = aligned;
	}
	return in->word >> 8 * (address & 7) & 0xff;
}

/* Reads a signed number of 6 bits a byte, the lowest first, whose lowest bit is the sign. */
static __s64 line_reader__number(struct line_reader *in)
{
	__u64 value = 0;
	int byte;

	for (__u32 shift = 0; shift < 36; shift += 6) {
		byte = line_reader__peek(in);
		if (byte < 0 || byte & 0x80)
			break;
		in->at++;
		value |= (__u64)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(__s64)(value >> 1) : (__s64)(value >> 1);
}

__u32 python_table__line(const struct python_table *table, __u32 first_line, __u32 position,
			 __u32 *prefix)
{
	struct line_reader in = { .table = table };
	__s64 line = first_line, before = -1;
	__u64 end = 0;
	int byte;

	*prefix = 0;
	if (!position)
		return line;
	while ((byte = line_reader__peek(&in)) >= 0x80) {
		__u32 kind = byte >> 3 & 15;
		__s64 now;

		in.at++;
		end += INSTRUCTION_BYTES * ((byte & 7) + 1);
		if (kind == ENTRY_LONG || kind == ENTRY_NO_COLUMNS)
			line += line_reader__number(&in);
		else if (kind >= ENTRY_FIRST_DELTA && kind < ENTRY_NO_COLUMNS)
			line += kind - ENTRY_FIRST_DELTA;
		while ((byte = line_reader__peek(&in)) >= 0 && byte < 0x80)
			in.at++;
		now = kind == ENTRY_NO_LINE ? 0 : line;
		if (now != before)
			*prefix = in.at;
		before = now;
		if (position - INSTRUCTION_BYTES < end)
			return now > 0 && now <= 0x7fffffff ? now : 0;
	}
	*prefix = in.at;
	return 0;
}

__u32 python_text__put(__u32 character, char *out, __u32 room)
{
	__u32 n;

	/* Names of files may have bytes that are no text, which stand as half of a pair. */
	if (character - 0xd800 < 0x800)
		character = '?';
	n = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	if (room < n)
		return 0;
	if (n == 1) {
		*out = character;
		return 1;
	}
	for (__u32 i = n; i-- > 1; character >>= 6)
		out[i] = 0x80 | (character & 63);
	*out = 0xf0 << (4 - n) | character;
	return n;
}
