// SPDX-License-Identifier: GPL-3.0-or-later
#include "json_keys.h"

#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

struct json_key {
	__u64 object; /* the object that has it */
	char *text;   /* owned */
	size_t at;
};

struct json_keys {
	struct json_key *keys;
	size_t n, room;
	__u64 objects[JSON_KEYS_MAX_DEPTH]; /* the open ones */
	size_t depth;
	__u64 n_objects;
};

/* The position after the string that begins at @at. */
static size_t string_end(const char *text, size_t size, size_t at)
{
	for (at++; at < size && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < size ? at + 1 : size;
}

static size_t skip_blanks(const char *text, size_t size, size_t at)
{
	while (at < size && memchr(" \t\r\n", text[at], 4))
		at++;
	return at;
}

/* Resolves escapes, so that two spellings of one key compare equal. */
static char *decode(const char *quoted, size_t size)
{
	struct json_tokener *tokener = json_tokener_new();
	json_object *string = tokener ? json_tokener_parse_ex(tokener, quoted, (int)size) : NULL;
	char *text = string ? strdup(json_object_get_string(string)) : NULL;

	json_object_put(string);
	json_tokener_free(tokener);
	return text;
}

static int add_key(struct json_keys *keys, const char *text, size_t at, size_t end)
{
	struct json_key *key;
	int err = array__reserve(&keys->keys, &keys->room, keys->n + 1, sizeof(*keys->keys));

	if (err || !keys->depth)
		return err;
	key = &keys->keys[keys->n];
	*key = (struct json_key){
		.object = keys->objects[keys->depth - 1],
		.text = memchr(text + at, '\\', end - at) ? decode(text + at, end - at)
							  : strndup(text + at + 1, end - at - 2),
		.at = at,
	};
	if (!key->text)
		return -ENOMEM;
	keys->n++;
	return 0;
}

static int collect(struct json_keys *keys, const char *text, size_t size)
{
	int err = 0;

	for (size_t at = 0, end; at < size && !err; at = end) {
		end = at + 1;
		switch (text[at]) {
		case '{':
		case '[':
			if (keys->depth == JSON_KEYS_MAX_DEPTH)
				return -E2BIG;
			keys->objects[keys->depth++] = keys->n_objects++;
			break;
		case '}':
		case ']':
			keys->depth -= keys->depth > 0;
			break;
		case '"':
			end = string_end(text, size, at);
			if (skip_blanks(text, size, end) < size &&
			    text[skip_blanks(text, size, end)] == ':')
				err = add_key(keys, text, at, end);
			break;
		default:
			break;
		}
	}
	return err;
}

static int compare_keys(const void *left, const void *right)
{
	const struct json_key *a = left, *b = right;
	int order;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	order = strcmp(a->text, b->text);
	if (order)
		return order;
	return a->at < b->at ? -1 : a->at > b->at;
}

static struct json_key *first_repeated(struct json_keys *keys)
{
	struct json_key *first = NULL;

	if (keys->n)
		qsort(keys->keys, keys->n, sizeof(*keys->keys), compare_keys);
	for (size_t i = 1; i < keys->n; i++) {
		struct json_key *key = &keys->keys[i];

		if (key->object == key[-1].object && !strcmp(key->text, key[-1].text) &&
		    (!first || key->at < first->at))
			first = key;
	}
	return first;
}

int json_keys__find_repeated(const char *text, size_t size, size_t *at, char **key)
{
	struct json_keys keys = { 0 };
	struct json_key *repeated;
	int err = collect(&keys, text, size);

	repeated = err ? NULL : first_repeated(&keys);
	if (repeated) {
		*at = repeated->at;
		*key = repeated->text;
		repeated->text = NULL;
		err = 1;
	}
	for (size_t i = 0; i < keys.n; i++)
		free(keys.keys[i].text);
	free(keys.keys);
	return err;
}

/* Whether the digits at @text, after an optional sign, exceed __s64. */
static bool is_out_of_range(const char *text, size_t length)
{
	bool negative = text[0] == '-';
	__u64 limit = (__u64)INT64_MAX + negative, number = 0;

	for (size_t i = negative; i < length; i++) {
		__u64 digit = text[i] - '0';

		if (number > (limit - digit) / 10)
			return true;
		number = 10 * number + digit;
	}
	return false;
}

bool json_keys__find_out_of_range(const char *text, size_t size, size_t *at, size_t *length)
{
	size_t end;

	for (size_t i = 0; i < size; i = end) {
		end = i + 1;
		if (text[i] == '"') {
			end = string_end(text, size, i);
		} else if (text[i] == '-' || isdigit((unsigned char)text[i])) {
			while (end < size && isdigit((unsigned char)text[end]))
				end++;
			/* With a fraction or an exponent it is no integer. */
			if ((end == size || !memchr(".eE", text[end], 3)) &&
			    is_out_of_range(text + i, end - i)) {
				*at = i;
				*length = end - i;
				return true;
			}
			while (end < size && memchr("0123456789.eE+-", text[end], 15))
				end++;
		}
	}
	return false;
}
