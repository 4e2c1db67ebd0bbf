/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks of JSON text that json-c does not do. */
#ifndef ALLOCPROF_JSON_KEYS_H
#define ALLOCPROF_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* Limit of nesting. */
#define JSON_KEYS_MAX_DEPTH 64

/*
 * Finds the first duplicate key of an object in @text, @size bytes of valid, strict JSON; parsers
 * silently keep one of the values. 1 with *@at, its position, and *@key, to be freed; 0 if there is
 * none; -E2BIG if nested too deeply, or -ENOMEM.
 */
int json_keys__find_repeated(const char *text, size_t size, size_t *at, char **key);

/*
 * Finds the first integer in @text, @size bytes that need not be valid JSON, that exceeds __s64:
 * json-c clamps it or fails, depending on its version. Returns whether there is one, with *@at, its
 * position, and *@length.
 */
bool json_keys__find_out_of_range(const char *text, size_t size, size_t *at, size_t *length);

#endif
