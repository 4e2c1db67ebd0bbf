// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_text.h"

#include <stdbool.h>
#include <string.h>

#include "text.h"

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* Returns whether the character changes the direction of text by the algorithm of UAX #9: U+200E,
 * U+200F, U+202A to U+202E, U+2066 to U+2069 and U+061C. */
static bool is_direction(const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;

	if (size == 2)
		return at[0] == 0xd8 && at[1] == 0x9c;
	if (size != 3 || at[0] != 0xe2)
		return false;
	if (at[1] == 0x80)
		return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xaa && at[2] <= 0xae);
	return at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;
}

/* Returns whether the character is U+FFFE or U+FFFF. */
static bool is_noncharacter(const char *text, size_t size)
{
	return size == 3 && (!memcmp(text, "\xef\xbf\xbe", 3) || !memcmp(text, "\xef\xbf\xbf", 3));
}

void page_text__print(const char *text, FILE *to)
{
	page_text__print_lines(text, "?", to);
}

void page_text__print_lines(const char *text, const char *newline, FILE *to)
{
	while (*text) {
		size_t size = utf8__printable(text);

		if (*text == '\n')
			fputs(newline, to);
		else if (!size || is_noncharacter(text, size))
			fputc('?', to);
		else if (entity(*text))
			fputs(entity(*text), to);
		else if (!is_direction(text, size))
			fwrite(text, 1, size, to);
		text += size ? size : 1;
	}
}
