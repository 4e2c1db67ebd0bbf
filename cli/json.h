/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON as every command writes it: json-c, which keeps all 64 bits of an unsigned count. */
#ifndef ALLOCPROF_JSON_H
#define ALLOCPROF_JSON_H

#include <json-c/json.h>
#include <stdio.h>

/* @text as UTF-8. Where it is none its bytes are taken as Latin-1: JSON has no bytes, and a name
 * that is left out would be worse. */
json_object *json__string(const char *text);

/* A number with six decimals. */
json_object *json__seconds(double seconds);

/* Writes @root indented, with a newline, and flushes. 0, -ENOMEM or the negative errno. */
int json__write(json_object *root, FILE *to);

/*
 * The same with one more member, the list @key of what @next makes, each freed when it is written:
 * lists that are too long to be held. @next returns NULL at the end.
 */
int json__write_list(json_object *root, const char *key, json_object *(*next)(void *context),
		     void *context, FILE *to);

#endif
