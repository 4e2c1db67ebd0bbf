/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints JSON in the same way with every version of json-c, whose own functions differ in white
 * space. */
#ifndef ALLOCPROF_JSON_TEXT_H
#define ALLOCPROF_JSON_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Makes text of @value, without a final newline: with a line for each member and indentation, or
 * on one line without blanks. Empty containers are [] and {} in both forms. The caller frees
 * *@text; *@size gets its length unless @size is NULL. Returns 0 or -ENOMEM.
 */
int json_text__make(json_object *value, bool indented, char **text, size_t *size);

#endif
