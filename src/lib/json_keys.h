/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a JSON parser does not tell. */
#ifndef ALLOCPROF_JSON_KEYS_H
#define ALLOCPROF_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* Objects and arrays in one another, at the most. */
#define JSON_KEYS_MAX_DEPTH 64

/*
 * The first key of @text, @size bytes of valid and strict JSON, that its object has had before: of which
 * parsers keep one value without a word. 1 with *@at, where it begins, and *@key, to be freed; 0 where there
 * is none; -E2BIG where it is nested deeper than above, or -ENOMEM.
 */
int json_keys__find_repeated(const char *text, size_t size, size_t *at, char **key);

/*
 * The first whole number of @text, @size bytes of which need not be valid JSON, that is not within the range
 * of __s64: some versions of json-c take the nearest that is, others stop there. Whether there is one, with
 * *@at, where it begins, and *@length.
 */
bool json_keys__find_out_of_range(const char *text, size_t size, size_t *at, size_t *length);

#endif
