// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dwarf_cursor.h"

#include <stddef.h>

static bool take(struct dwarf_cursor *c, void *to, size_t size)
{
	if ((size_t)(c->end - c->pos) < size) {
		c->pos = c->end;
		c->bad = true;
		__builtin_memset(to, 0, size);
		return false;
	}
	__builtin_memcpy(to, c->pos, size);
	c->pos += size;
	return true;
}

__u8 dwarf_cursor__u8(struct dwarf_cursor *c)
{
	if (c->pos == c->end) {
		c->bad = true;
		return 0;
	}
	return *c->pos++;
}

__u16 dwarf_cursor__u16(struct dwarf_cursor *c)
{
	__u16 value;

	take(c, &value, sizeof(value));
	return value;
}

__u32 dwarf_cursor__u32(struct dwarf_cursor *c)
{
	__u32 value;

	take(c, &value, sizeof(value));
	return value;
}

__u64 dwarf_cursor__u64(struct dwarf_cursor *c)
{
	__u64 value;

	take(c, &value, sizeof(value));
	return value;
}

/* Reads a LEB128 number. Ten bytes hold 64 bits; longer encodings are refused. */
static __u64 leb128(struct dwarf_cursor *c, unsigned int *shift, __u8 *last)
{
	__u64 value = 0;
	__u8 byte;

	*shift = 0;
	do {
		byte = dwarf_cursor__u8(c);
		if (*shift >= 70) {
			c->pos = c->end;
			c->bad = true;
			return 0;
		}
		if (*shift < 64)
			value |= (__u64)(byte & 0x7f) << *shift;
		*shift += 7;
	} while (byte & 0x80);
	*last = byte;
	return value;
}

__u64 dwarf_cursor__uleb128(struct dwarf_cursor *c)
{
	unsigned int shift;
	__u8 last;

	if (c->pos != c->end && *c->pos < 0x80)
		return *c->pos++;
	return leb128(c, &shift, &last);
}

__s64 dwarf_cursor__sleb128(struct dwarf_cursor *c)
{
	unsigned int shift;
	__u8 last = 0;
	__u64 value = leb128(c, &shift, &last);

	if (shift < 64 && (last & 0x40))
		value |= ~(__u64)0 << shift;
	return (__s64)value;
}

const __u8 *dwarf_cursor__skip(struct dwarf_cursor *c, __u64 size)
{
	const __u8 *start = c->pos;

	if ((__u64)(c->end - c->pos) < size) {
		c->pos = c->end;
		c->bad = true;
		return c->end;
	}
	c->pos += size;
	return start;
}
