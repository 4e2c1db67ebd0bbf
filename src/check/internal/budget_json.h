/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_BUDGET_JSON_H
#define ALLOCPROF_BUDGET_JSON_H

#include <json-c/json.h>
#include <stddef.h>

struct error;

/* Reads @size bytes of @text, which a NUL must follow; @path is for messages. Returns 0 with
 * *@root, on which the caller calls json_object_put(), or -EINVAL, -EFBIG or -ENOMEM with @error
 * set. */
int budget_json__read(const char *text, size_t size, const char *path, json_object **root,
		      struct error *error);

#endif
