// SPDX-License-Identifier: GPL-3.0-or-later
#include "terminal_of.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "array.h"
#include "pager.h"

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
