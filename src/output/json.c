// SPDX-License-Identifier: GPL-3.0-or-later
#include "json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "json_text.h"
#include "utf8.h"

json_object *json__string(const char *text)
{
	_cleanup_(free_ptr) char *utf8 = NULL;
	size_t n = 0;

	if (utf8__is_valid(text))
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
	_cleanup_(free_ptr) char *text = NULL;
	int err = json_text__make(root, true, &text, NULL);

	if (err)
		return err;
	errno = 0;
	if (fprintf(to, "%s\n", text) < 0 || fflush(to))
		return errno ? -errno : -EIO;
	return 0;
}

static int write_item(json_object *item, bool first, FILE *to)
{
	_cleanup_(free_ptr) char *text = NULL;
	int err = json_text__make(item, false, &text, NULL);

	if (!err)
		fprintf(to, "%s\n    %s", first ? "" : ",", text);
	return err;
}

int json__write_list(json_object *root, const char *key, json_object *(*next)(void *context),
		     void *context, FILE *to)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	json_object *item;
	int err = json_text__make(root, true, &text, &size);

	if (err)
		return err;
	errno = 0;
	/* Without the closing bracket and the newline before it. */
	fprintf(to, "%.*s,\n  \"%s\": [", (int)size - 2, text, key);
	for (bool first = true; !ferror(to) && (item = next(context)); first = false) {
		err = write_item(item, first, to);
		json_object_put(item);
		if (err)
			return err;
	}
	fputs("\n  ]\n}\n", to);
	if (fflush(to) || ferror(to))
		return errno ? -errno : -EIO;
	return 0;
}
