// SPDX-License-Identifier: GPL-3.0-or-later
/* Parses an argument of a USDT probe, which is an assembler's operand after its size. */
#include "usdt_operand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt_definition.h"

/* Limit of characters that is larger than any operand that assemblers write. */
#define MAX_OPERAND 128

/* Parses the number at *@text, if there is one, and moves *@text behind it. */
bool usdt_number__take(const char **text, __s64 *value)
{
	unsigned long long number;
	const char *at = *text;
	bool is_negative = *at == '-';
	char *end;

	at += *at == '-' || *at == '+';
	if (*at < '0' || *at > '9')
		return false;
	errno = 0;
	number = strtoull(at, &end, 0);
	if (errno)
		return false;
	*value = is_negative ? -number : number;
	*text = end;
	return true;
}

/* Parses "8@" or "-4@", the width in bytes, which is negative if the argument is signed. Without
 * it the argument has 8 bytes. */
static int take_size(const char **text, struct ap_operand *operand)
{
	const char *at = strchr(*text, '@');
	char *end;
	long size;

	operand->bytes = 8;
	if (!at)
		return 0;
	size = strtol(*text, &end, 10);
	if (end == *text)
		return -EINVAL;
	if (end != at)
		return *end == 'f' ? -ENOTSUP : -EINVAL;
	operand->is_signed = size < 0;
	size = labs(size);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return -ENOTSUP;
	operand->bytes = size;
	*text = at + 1;
	return 0;
}

/* Returns the length of the argument at @text; those of arm64 have spaces between brackets. */
static size_t argument_length(const char *text)
{
	size_t len = 0;
	bool is_within = false;

	for (; text[len] && (text[len] != ' ' || is_within); len++)
		is_within = text[len] == '[' || (is_within && text[len] != ']');
	return len;
}

int usdt_operand__parse(const char *arguments, unsigned int number, struct ap_operand *out)
{
	struct ap_operand operand = { .base = AP_NO_REGISTER, .index = AP_NO_REGISTER };
	char text[MAX_OPERAND];
	const char *at;
	size_t len;
	int err;

	for (;;) {
		arguments += strspn(arguments, " ");
		len = argument_length(arguments);
		if (!len)
			return -ENOENT;
		if (!number--)
			break;
		arguments += len;
	}
	if (len >= sizeof(text))
		return -EINVAL;
	snprintf(text, sizeof(text), "%.*s", (int)len, arguments);
	at = text;
	err = take_size(&at, &operand);
	if (!err)
		err = usdt_operand__place(at, &operand);
	if (!err)
		*out = operand;
	return err;
}
