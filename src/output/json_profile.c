// SPDX-License-Identifier: GPL-3.0-or-later
#include "json_profile.h"

#include "profile.h"

json_object *json__meta(const struct profile *profile, const char *key)
{
	const char *value = profile__meta(profile, key);

	return value ? json__string(value) : NULL;
}

json_object *json__ledger(const struct profile *profile)
{
	json_object *ledger = json_object_new_object();

	for (size_t i = 0; i < profile->n_ledger; i++)
		json__add(ledger, profile->ledger[i].name, json__count(profile->ledger[i].value));
	return ledger;
}
