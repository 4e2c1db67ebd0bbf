// SPDX-License-Identifier: GPL-3.0-or-later
#include "text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

size_t utf8__sequence(const char *text)
{
	static const unsigned int smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *at = (const unsigned char *)text;
	unsigned int code;
	size_t n;

	if (*at < 0x80)
		return 1;
	n = *at >= 0xf8 ? 0 : *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 0;
	if (!n)
		return 0;
	code = *at & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

size_t utf8__printable(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (*at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0))
		return 0;
	return utf8__sequence(text);
}

bool utf8__is_valid(const char *text)
{
	size_t size;

	while (*text && (size = utf8__sequence(text)))
		text += size;
	return !*text;
}

void utf8__clean(char *text)
{
	while (*text) {
		size_t size = utf8__printable(text);

		if (!size)
			*text = '?';
		text += size ? size : 1;
	}
}

char *utf8__from_bytes(const char *text)
{
	char *utf8;
	size_t n = 0;

	if (utf8__is_valid(text))
		return strdup(text);
	utf8 = malloc(2 * strlen(text) + 1);
	if (!utf8)
		return NULL;
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at >= 0x80)
			utf8[n++] = 0xc0 | *at >> 6;
		utf8[n++] = *at >= 0x80 ? 0x80 | (*at & 0x3f) : *at;
	}
	utf8[n] = '\0';
	return utf8;
}

struct plural_text plural__of(const char *sentence, __u64 n)
{
	struct plural_text plural = { "" };
	size_t len = 0;

	while (*sentence && len + 1 < sizeof(plural.text)) {
		size_t bar = strcspn(sentence, "|"), end = strcspn(sentence, "}");

		if (*sentence != '{' || !sentence[end] || bar > end) {
			plural.text[len++] = *sentence++;
			continue;
		}
		for (size_t at = n == 1 ? 1 : bar + 1;
		     at < (n == 1 ? bar : end) && len + 1 < sizeof(plural.text); at++)
			plural.text[len++] = sentence[at];
		sentence += end + 1;
	}
	return plural;
}

void shell_word__print(const char *word, FILE *to)
{
	bool plain = word[0] && !word[strcspn(word, " \t\n\"'\\$`*?[]{}()<>|&;!~#")];

	if (plain) {
		fputs(word, to);
		return;
	}
	fputc('\'', to);
	for (const char *c = word; *c; c++) {
		if (*c == '\'')
			fputs("'\\''", to);
		else
			fputc(*c, to);
	}
	fputc('\'', to);
}

bool text__matches(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}
