/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON as text, the same with every version of json-c: they differ in the white space that they print. */
#ifndef ALLOCPROF_JSON_TEXT_H
#define ALLOCPROF_JSON_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * @value as text, to be freed, without a newline at the end. Indented, with a line for each member, or all on
 * one line without blanks. What has no members is [] or {} in both. *@size, which may be NULL, is its length.
 * 0 or -ENOMEM.
 */
int json_text__make(json_object *value, bool indented, char **text, size_t *size);

#endif
