// SPDX-License-Identifier: GPL-3.0-or-later
#include "error.h"

#include <stdio.h>

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
	struct error inner;
	va_list args;
	int len;

	if (!error)
		return err;
	inner = *error;
	va_start(args, fmt);
	len = vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	if (len >= 0 && (size_t)len < sizeof(error->text))
		snprintf(error->text + len, sizeof(error->text) - len, ": %s", inner.text);
	return err;
}
