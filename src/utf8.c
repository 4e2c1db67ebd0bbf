// SPDX-License-Identifier: GPL-3.0-or-later
#include "utf8.h"

size_t utf8__sequence(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
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

void utf8__clean(char *text)
{
	while (*text) {
		size_t size = utf8__sequence(text);

		if (!size) {
			if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
				*text = '?';
			size = 1;
		}
		text += size;
	}
}
