// SPDX-License-Identifier: GPL-3.0-or-later
#include "terminal.h"

#include <stdint.h>

#include "text.h"

void terminal__set_colour(const struct terminal *terminal, enum colour colour)
{
	static const char *const codes[] = {
		[COLOUR_NONE] = "\033[0m", [COLOUR_BOLD] = "\033[1m",	[COLOUR_DIM] = "\033[2m",
		[COLOUR_RED] = "\033[31m", [COLOUR_GREEN] = "\033[32m",
	};

	if (terminal->colour)
		fputs(codes[colour], terminal->to);
}

size_t terminal__columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text; columns++) {
		size_t n = utf8__printable(text);

		text += n ? n : 1;
	}
	return columns;
}

/* Returns the length of the printable ASCII at the start of @text, up to @columns; most names are
 * nothing else. */
static size_t find_run(const char *text, size_t columns)
{
	size_t n = 0;

	while (n < columns && text[n] >= ' ' && text[n] < 0x7f)
		n++;
	return n;
}

size_t terminal__print(const struct terminal *terminal, const char *text, size_t columns)
{
	bool cut = columns && terminal__columns_of(text) > columns;
	size_t used = 0, room = !cut ? SIZE_MAX : columns > 3 ? columns - 3 : 0;

	while (*text && used < room) {
		size_t run = find_run(text, room - used), n = utf8__printable(text);

		if (run) {
			fwrite_unlocked(text, 1, run, terminal->to);
			text += run;
			used += run;
			continue;
		}
		if (n)
			fwrite_unlocked(text, 1, n, terminal->to);
		else
			putc_unlocked('?', terminal->to);
		text += n ? n : 1;
		used++;
	}
	for (; cut && used < columns; used++)
		putc_unlocked('.', terminal->to);
	return used;
}
