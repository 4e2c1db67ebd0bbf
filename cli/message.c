// SPDX-License-Identifier: GPL-3.0-or-later
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "progress.h"
#include "text.h"

void message__print(const char *fmt, ...)
{
	char text[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	utf8__clean(text);
	progress__clear();
	fprintf(stderr, "allocprof: %s\n", text);
}

void message__error(const struct error *error, int err)
{
	message__print("%s", error->text[0] ? error->text : strerror(-err));
}
