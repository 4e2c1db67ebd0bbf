// SPDX-License-Identifier: GPL-3.0-or-later
#include "terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "array.h"
#include "pager.h"
#include "utf8.h"

#define MIN_COLUMNS 40

static size_t find_columns(int fd)
{
	const char *text = getenv("COLUMNS");
	struct winsize size = { 0 };
	unsigned long columns = text ? strtoul(text, NULL, 10) : 0;

	if (!columns && !ioctl(fd, TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (!columns)
		columns = 80;
	return columns < MIN_COLUMNS ? MIN_COLUMNS : columns;
}

static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

struct terminal terminal__of(FILE *to)
{
	int fd = to == stdout && pager__terminal_fd() >= 0 ? pager__terminal_fd() : fileno(to);
	struct terminal terminal = { .to = to, .is_terminal = isatty(fd) };
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (!terminal.is_terminal)
		return terminal;
	terminal.redraws = term && strcmp(term, "dumb");
	terminal.colour = !(no_color && *no_color) && terminal.redraws;
	terminal.utf8 = locale_is_utf8();
	terminal.columns = find_columns(fd);
	return terminal;
}

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

/* Length of the printable ASCII at the start of @text, up to @columns: most names. */
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
