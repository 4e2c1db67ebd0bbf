/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes and writes JSON. json-c keeps all 64 bits of an unsigned count. */
#ifndef ALLOCPROF_JSON_H
#define ALLOCPROF_JSON_H

#include <json-c/json.h>
#include <linux/types.h>
#include <stdio.h>

struct profile;
struct profile_rss_sample;

/*
 * Returns @text as UTF-8. Bytes that are not valid UTF-8 are read as Latin-1: JSON cannot contain
 * them, and to drop the name would be worse.
 */
json_object *json__string(const char *text);

static inline json_object *json__count(__u64 count)
{
	return json_object_new_uint64(count);
}

/* Adds @value to @object, which takes it over. NULL is written as null. */
static inline void json__add(json_object *object, const char *key, json_object *value)
{
	json_object_object_add(object, key, value);
}

/* Returns a number with six decimals. */
json_object *json__seconds(double seconds);

/* Prints @value on one line without blanks, and without a newline, for documents that are too long
 * to be built in memory. Returns 0 or -ENOMEM; the caller checks @to for errors. */
int json__print(json_object *value, FILE *to);
/* Does the same for json__string(@text). */
int json__print_string(const char *text, FILE *to);

/* Writes @root indented, with a newline, and flushes. Returns 0, -ENOMEM or the negative errno of
 * the write. */
int json__write(json_object *root, FILE *to);

/*
 * Write a document with lists that may be too long for memory: json__begin() writes the other members of @root, of which
 * there must be at least one, json__list() one list, of which @next returns one element after the other, which is freed when
 * it is written, and NULL at the end, and json__end() the end, and flushes. They return 0 or -ENOMEM, json__end() also the
 * negative errno of a write.
 */
int json__begin(json_object *root, FILE *to);
int json__list(const char *key, json_object *(*next)(void *context), void *context, FILE *to);
int json__end(FILE *to);

/* Parts of a profile that several kinds of JSON have. */

/* Returns the value of @key in the profile's table meta as a string; NULL, which is null, if there
 * is none. */
json_object *json__meta(const struct profile *profile, const char *key);
/* Returns the profile's ledger as an object: counts by name. */
json_object *json__ledger(const struct profile *profile);

/* Returns the samples of the parts of the resident memory. */
json_object *json__rss_samples(const struct profile_rss_sample *samples, size_t n);

#endif
