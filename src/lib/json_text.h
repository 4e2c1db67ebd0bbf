/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints JSON the same way with every version of json-c, whose white space differs. */
#ifndef ALLOCPROF_JSON_TEXT_H
#define ALLOCPROF_JSON_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * @value as text without a final newline, to be freed: indented with a line for each member, or on
 * one line without blanks. Empty containers are [] and {} in both. *@size, which may be NULL, is
 * its length. 0 or -ENOMEM.
 */
int json_text__make(json_object *value, bool indented, char **text, size_t *size);

#endif
