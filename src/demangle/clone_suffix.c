// SPDX-License-Identifier: GPL-3.0-or-later
#include "clone_suffix.h"

#include <ctype.h>
#include <string.h>

#include "array.h"

/* Suffixes, each of which a number may follow: ".isra.0". LLVM's number is hexadecimal. */
static const char *const marks[] = { ".cold", ".isra",	   ".constprop",  ".part",
				     ".llvm", ".lto_priv", ".localalias", ".clone" };

size_t clone_suffix__start(const char *symbol, size_t len)
{
	size_t end = len;

	for (size_t i = 0; i < ARRAY_SIZE(marks);) {
		size_t mark_len = strlen(marks[i]), number = end;

		while (number && isxdigit((unsigned char)symbol[number - 1]))
			number--;
		number = number && number < end && symbol[number - 1] == '.' ? number - 1 : end;
		if (number > mark_len && !memcmp(symbol + number - mark_len, marks[i], mark_len)) {
			end = number - mark_len;
			i = 0;
		} else {
			i++;
		}
	}
	return end;
}
