/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON output. json-c keeps all 64 bits of an unsigned count. */
#ifndef ALLOCPROF_JSON_H
#define ALLOCPROF_JSON_H

#include <json-c/json.h>
#include <linux/types.h>
#include <stdio.h>

struct profile;

/*
 * @text as UTF-8; bytes that are not valid UTF-8 are taken as Latin-1. JSON cannot hold them, and
 * dropping the name would be worse.
 */
json_object *json__string(const char *text);

static inline json_object *json__count(__u64 count)
{
	return json_object_new_uint64(count);
}

/* Takes @value over; NULL is null. */
static inline void json__add(json_object *object, const char *key, json_object *value)
{
	json_object_object_add(object, key, value);
}

/* A number with six decimals. */
json_object *json__seconds(double seconds);

/* Prints @value on one line without blanks, and without a newline: for what is too long to be built
 * in memory. 0 or -ENOMEM; errors of @to are the caller's to find. */
int json__print(json_object *value, FILE *to);
/* The same for json__string(@text). */
int json__print_string(const char *text, FILE *to);

/* Writes @root indented, with a newline, and flushes. 0, -ENOMEM or the negative errno. */
int json__write(json_object *root, FILE *to);

/*
 * The same with a further member, the list @key, for lists that are too long for memory: @next
 * returns one element after the other, which is freed once it is written, and NULL at the end.
 */
int json__write_list(json_object *root, const char *key, json_object *(*next)(void *context),
		     void *context, FILE *to);

/*
 * The same with any number of lists: json__begin() writes the other members, of which there is at
 * least one, json__list() one list, json__end() the end, and flushes. 0, -ENOMEM, or from
 * json__end() the negative errno of a write.
 */
int json__begin(json_object *root, FILE *to);
int json__list(const char *key, json_object *(*next)(void *context), void *context, FILE *to);
int json__end(FILE *to);

/* Parts of a profile that several kinds of JSON have. */

/* The value of @key in the profile's table meta, as a string; NULL, which is null, if it has none. */
json_object *json__meta(const struct profile *profile, const char *key);
/* The profile's ledger: counts by name. */
json_object *json__ledger(const struct profile *profile);

#endif
