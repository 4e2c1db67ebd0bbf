// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads JSON into json-c's tree, and refuses what json-c would misread: a key that occurs twice,
 * and an integer beyond __s64. */
#include "budget_json.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"

/* The nesting that json-c permits for objects and arrays is one less. */
#define MAX_DEPTH 64

/* Returns the end of the string or number that begins at @at, or of the one character there. */
static size_t token_end(const char *text, size_t size, size_t at)
{
	size_t end = at + 1;

	if (text[at] == '"') {
		for (; end < size && text[end] != '"'; end++)
			end += text[end] == '\\';
		return end < size ? end + 1 : size;
	}
	if (text[at] == '-' || isdigit((unsigned char)text[at]))
		while (end < size && memchr("0123456789.eE+-", text[end], 15))
			end++;
	return end;
}

/* Returns the position of the offset @at, "line 3, byte 14", both from 1. */
struct position_text {
	char text[64];
};

static struct position_text position_text_of(const char *text, size_t at)
{
	struct position_text position;
	size_t line = 1, byte = 1;

	for (size_t i = 0; i < at; i++) {
		byte = text[i] == '\n' ? 1 : byte + 1;
		line += text[i] == '\n';
	}
	snprintf(position.text, sizeof(position.text), "line %zu, byte %zu", line, byte);
	return position;
}

/* Refuses numbers that json-c clamps or fails at, depending on its version. */
static int refuse_out_of_range(const char *text, size_t size, const char *path, struct error *error)
{
	for (size_t at = 0, end; at < size; at = end) {
		size_t length;

		end = token_end(text, size, at);
		if (text[at] != '-' && !isdigit((unsigned char)text[at]))
			continue;
		errno = 0;
		(void)strtoll(text + at, NULL, 10);
		length = 1 + strspn(text + at + 1, "0123456789");
		/* A number with a fraction or an exponent is no integer. */
		if (errno == ERANGE && !(text[at + length] && strchr(".eE", text[at + length])))
			return error__set(error, -EINVAL,
					  "%.256s, %s: no limit can be %.*s; it has to be from 0 "
					  "to %lld",
					  path, position_text_of(text, at).text,
					  length < 64 ? (int)length : 64, text + at,
					  (long long)INT64_MAX - 1);
	}
	return 0;
}

static int tokenize(const char *text, size_t size, const char *path, json_object **root,
		    struct error *error)
{
	struct json_tokener *tokener = json_tokener_new();
	enum json_tokener_error what;
	int err = 0;

	if (!tokener)
		return error__set(error, -ENOMEM, "cannot read %.256s: out of memory", path);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	if (size > INT_MAX - 1)
		err = error__set(error, -EFBIG, "%.256s is too large to be a budget", path);
	/* The NUL is included, so that a number at the end is terminated. */
	if (!err)
		*root = json_tokener_parse_ex(tokener, text, size + 1);
	what = json_tokener_get_error(tokener);
	if (!err && what != json_tokener_success) {
		json_object_put(*root);
		err = error__set(error, -EINVAL, "%.256s is no JSON: %s: %s", path,
				 position_text_of(text, json_tokener_get_parse_end(tokener)).text,
				 what == json_tokener_continue ? "it ends too early"
							       : json_tokener_error_desc(what));
	}
	json_tokener_free(tokener);
	return err;
}

static void free_tokener(struct json_tokener **tokener)
{
	json_tokener_free(*tokener);
}

/* Adds the key that is the string @quoted to @keys. Returns -EEXIST if they have it, with *@key,
 * on which the caller calls json_object_put(). */
static int add_key(json_object *keys, const char *quoted, size_t size, json_object **key)
{
	_cleanup_(free_tokener) struct json_tokener *tokener = json_tokener_new();
	/* Escapes are resolved, so that two spellings of one key are equal. */
	json_object *name = tokener ? json_tokener_parse_ex(tokener, quoted, (int)size) : NULL;
	int err = -ENOMEM;

	if (name && json_object_object_get_ex(keys, json_object_get_string(name), NULL)) {
		*key = name;
		return -EEXIST;
	}
	if (name && !json_object_object_add(keys, json_object_get_string(name), NULL))
		err = 0;
	json_object_put(name);
	return err;
}

/* Finds the first key that its object has already. Reads strict JSON. Returns -EEXIST with *@at
 * and *@key, on which the caller calls json_object_put(); or -ENOMEM or -E2BIG. */
static int find_repeated(const char *text, size_t size, size_t *at, json_object **key)
{
	json_object *keys[MAX_DEPTH]; /* keys of the objects that are open */
	size_t depth = 0, end;
	int err = 0;

	for (*at = 0; *at < size; *at = end) {
		end = token_end(text, size, *at);
		switch (text[*at]) {
		case '{':
		case '[':
			keys[depth] = json_object_new_object();
			err = !keys[depth++] ? -ENOMEM : depth == MAX_DEPTH ? -E2BIG : 0;
			break;
		case '}':
		case ']':
			if (depth)
				json_object_put(keys[--depth]);
			break;
		case '"':
			if (depth && text[end + strspn(text + end, " \t\r\n")] == ':')
				err = add_key(keys[depth - 1], text + *at, end - *at, key);
			break;
		}
		if (err)
			break;
	}
	while (depth)
		json_object_put(keys[--depth]);
	return err;
}

/* Refuses two tests of one name, as merges leave them: json-c would silently drop one. */
static int refuse_repeated(const char *text, size_t size, const char *path, struct error *error)
{
	json_object *key = NULL;
	size_t at;
	int err = find_repeated(text, size, &at, &key);

	if (err == -EEXIST)
		err = error__set(error, -EINVAL,
				 "%.256s has the key \"%.64s\" twice, again at %s; only one of "
				 "them can hold",
				 path, json_object_get_string(key),
				 position_text_of(text, at).text);
	else if (err)
		error__set(error, err, "cannot read %.256s: %s", path, strerror(-err));
	json_object_put(key);
	return err;
}

int budget_json__read(const char *text, size_t size, const char *path, json_object **root,
		      struct error *error)
{
	json_object *made = NULL;
	int err = refuse_out_of_range(text, size, path, error);

	if (!err)
		err = tokenize(text, size, path, &made, error);
	if (err)
		return err;
	err = refuse_repeated(text, size, path, error);
	if (err)
		json_object_put(made);
	else
		*root = made;
	return err;
}
