// SPDX-License-Identifier: GPL-3.0-or-later
#include "json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

/* Bytes of the sequence at @text, 0 where it is no UTF-8. */
static size_t sequence_bytes(const unsigned char *text)
{
	static const unsigned int smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int code;
	size_t n;

	if (*text < 0x80)
		return 1;
	n = *text >= 0xf8 ? 0 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : *text >= 0xc0 ? 2 : 0;
	if (!n)
		return 0;
	code = *text & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

static bool is_utf8(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t n;

	for (; *at; at += n) {
		n = sequence_bytes(at);
		if (!n)
			return false;
	}
	return true;
}

json_object *json__string(const char *text)
{
	_cleanup_(free_ptr) char *utf8 = NULL;
	size_t n = 0;

	if (is_utf8(text))
		return json_object_new_string(text);
	utf8 = malloc(2 * strlen(text) + 1);
	if (!utf8)
		return NULL;
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at >= 0x80)
			utf8[n++] = 0xc0 | *at >> 6;
		utf8[n++] = *at >= 0x80 ? 0x80 | (*at & 0x3f) : *at;
	}
	return json_object_new_string_len(utf8, n);
}

json_object *json__seconds(double seconds)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", seconds);
	return json_object_new_double_s(seconds, text);
}

int json__write(json_object *root, FILE *to)
{
	const char *text = json_object_to_json_string_ext(
		root,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!text)
		return -ENOMEM;
	errno = 0;
	if (fprintf(to, "%s\n", text) < 0 || fflush(to))
		return errno ? -errno : -EIO;
	return 0;
}
