// SPDX-License-Identifier: GPL-3.0-or-later
/* The text of an error: the function that finds the error writes it, and the command prints it. */
#include "error.h"

#include <stdio.h>
#include <string.h>

int error__set(struct error *error, int err, const char *fmt, ...)
{
	va_list args;

	if (!error)
		return err;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	return err;
}

int error__wrap(struct error *error, int err, const char *fmt, ...)
{
	struct error outer;
	size_t len, inner_len;
	va_list args;

	if (!error)
		return err;
	va_start(args, fmt);
	vsnprintf(outer.text, sizeof(outer.text), fmt, args);
	va_end(args);
	len = strlen(outer.text);
	if (len + 2 < sizeof(outer.text)) {
		memcpy(outer.text + len, ": ", 2);
		len += 2;
		inner_len = strnlen(error->text, sizeof(outer.text) - 1 - len);
		memcpy(outer.text + len, error->text, inner_len);
		outer.text[len + inner_len] = '\0';
	}
	*error = outer;
	return err;
}
