// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded_name.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* Replaces unsafe characters (allocprof-folded(1)) and appends @terminator, for which there must be
 * room. */
static void make_safe(char *name, char terminator)
{
	unsigned char *to = (unsigned char *)name;
	const unsigned char *at = to;

	while (*at) {
		size_t size = *at < 0x80 ? 0 : utf8__printable((const char *)at);

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
