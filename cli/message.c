// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints sentences to stderr, and one line of progress that they replace. */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "text.h"
#include "user_terminal.h"

static struct {
	void (*take)(const char *text, void *context);
	void *context;
} diversion;

void message__divert(void (*take)(const char *text, void *context), void *context)
{
	diversion.take = take;
	diversion.context = context;
}

void message__print(const char *fmt, ...)
{
	char text[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	utf8__clean(text);
	if (diversion.take) {
		diversion.take(text, diversion.context);
		return;
	}
	progress__clear();
	fprintf(stderr, "allocprof: %s\n", text);
}

void message__error(const struct error *error, int err)
{
	message__print("%s", error->text[0] ? error->text : strerror(-err));
}

#define WAIT_NS	 2000000000ULL
#define PAUSE_NS 500000000ULL

/* The line of progress. There is one on one terminal, whoever draws it. */
static struct {
	bool is_forbidden;
	bool is_shown;
	__u64 drawn_ns; /* when the last attempt to draw was made (CLOCK_MONOTONIC) */
	bool (*is_in_use)(void *context);
	void *context;
} line;

void progress__begin(struct progress *progress)
{
	*progress = (struct progress){ .start_ns = clock__now_ns() };
}

bool progress__is_due(const struct progress *progress)
{
	__u64 now = clock__now_ns();

	return now - progress->start_ns >= WAIT_NS && now - line.drawn_ns >= PAUSE_NS;
}

/* Returns whether no other process writes to the terminal. Returns false while allocprof is in the
 * background. */
static bool is_terminal_ours(void)
{
	pid_t group = tcgetpgrp(STDERR_FILENO);

	if (group >= 0 && group != getpgrp())
		return false;
	return !line.is_in_use || !line.is_in_use(line.context);
}

/* Finds out how long a line may be, since one that wraps could not be erased. */
static size_t find_width(const struct terminal *terminal)
{
	struct winsize size = { 0 };

	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col > 1 ? size.ws_col - 1 : 1;
	return terminal->columns - 1;
}

void progress__draw(const char *format, ...)
{
	struct terminal terminal = terminal__of(stderr);
	char text[512];
	va_list args;

	line.drawn_ns = clock__now_ns();
	if (line.is_forbidden || !terminal.redraws)
		return;
	if (!is_terminal_ours()) {
		/* Another process may have overwritten the line by now. */
		line.is_shown = false;
		return;
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fputc('\r', stderr);
	terminal__print(&terminal, text, find_width(&terminal));
	fputs("\033[K", stderr);
	line.is_shown = true;
}

bool progress__is_shown(void)
{
	return line.is_shown;
}

void progress__clear(void)
{
	if (line.is_shown && is_terminal_ours())
		fputs("\r\033[K", stderr);
	line.is_shown = false;
}

void progress__forbid(void)
{
	line.is_forbidden = true;
	line.is_shown = false;
}

void progress__share(bool (*is_in_use)(void *context), void *context)
{
	line.is_in_use = is_in_use;
	line.context = context;
}
