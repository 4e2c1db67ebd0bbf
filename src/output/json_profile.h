/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of a profile that several kinds of JSON have. */
#ifndef ALLOCPROF_JSON_PROFILE_H
#define ALLOCPROF_JSON_PROFILE_H

#include "json.h"

struct profile;

/* The value of @key in the profile's table meta, as a string; NULL, which is null, if it has none. */
json_object *json__meta(const struct profile *profile, const char *key);
/* The profile's ledger: counts by name. */
json_object *json__ledger(const struct profile *profile);

#endif
