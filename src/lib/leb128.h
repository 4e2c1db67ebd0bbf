/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unsigned LEB128. The reader checks no bounds, so it is only for memory that this process has
 * written. */
#ifndef ALLOCPROF_LEB128_H
#define ALLOCPROF_LEB128_H

#include <linux/types.h>

/* Size in bytes of the longest number. */
#define LEB128_MAX 10

/* Writes @value at @to and returns the end. */
static inline unsigned char *leb128__put(unsigned char *to, __u64 value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = value | 0x80;
	*to++ = value;
	return to;
}

/* Reads a number that leb128__put() wrote at @from and returns its end. */
static inline const unsigned char *leb128__get(const unsigned char *from, __u64 *value)
{
	unsigned int shift = 0;

	*value = 0;
	do
		*value |= (__u64)(*from & 0x7f) << shift;
	while (shift += 7, *from++ & 0x80);
	return from;
}

#endif
