// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded_name.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at @at, or 0. */
static size_t utf8_sequence(const unsigned char *at)
{
	size_t size;

	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		size = 2;
	else if (at[0] >= 0xe0 && at[0] <= 0xef)
		size = 3;
	else if (at[0] >= 0xf0 && at[0] <= 0xf4)
		size = 4;
	else
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates, beyond U+10FFFF, and the C1 controls. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f) ||
	    (at[0] == 0xc2 && at[1] < 0xa0))
		return 0;
	return size;
}

/* Makes @name safe in place, as allocprof-folded(1) tells, and ends it with @terminator, for which
 * there must be room. */
static void make_safe(char *name, char terminator)
{
	unsigned char *to = (unsigned char *)name;
	const unsigned char *at = to;

	while (*at) {
		size_t size = utf8_sequence(at);

		if (size) {
			memmove(to, at, size);
			to += size;
			at += size;
			continue;
		}
		if (*at == ' ' && to != (unsigned char *)name && to[-1] == ',') {
			at++;
			continue;
		}
		if (*at == ';')
			*to = ':';
		else if (strchr(" \t\n\v\f\r", *at))
			*to = '_';
		else if (*at < 0x20 || *at >= 0x7f)
			*to = '?';
		else
			*to = *at;
		to++;
		at++;
	}
	*to++ = terminator;
	*to = '\0';
}

char *folded_name__new(const char *name, char terminator)
{
	size_t len;
	char *copy;

	if (!*name)
		name = "[unknown]";
	len = strlen(name);
	copy = malloc(len + 2);
	if (!copy)
		return NULL;
	memcpy(copy, name, len + 1);
	make_safe(copy, terminator);
	return copy;
}
