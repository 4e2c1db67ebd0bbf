// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "demangle.h"
#include "profile.h"

static bool is_as_linked(const struct profile_function *function)
{
	return !strcmp(function->name, function->symbol);
}

static int name_function(struct profile *profile, const struct demangler *demangler,
			 const struct profile_function *function)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(free_ptr) char *full_name = NULL;
	int err = demangler__names(demangler, function->symbol, &name, &full_name);

	if (err || (!strcmp(name, function->name) && !strcmp(full_name, function->full_name)))
		return err;
	return profile__set_function_names(profile, function->id, name, full_name);
}

int profile__demangle(struct profile *profile, struct demangler *demangler, struct error *error)
{
	int err, filter_err;

	for (size_t i = 0; i < profile->n_functions; i++) {
		if (!is_as_linked(&profile->functions[i]))
			continue;
		err = demangler__add(demangler, profile->functions[i].symbol);
		if (err)
			return err;
	}
	filter_err = demangler__run(demangler, error);
	if (filter_err == -ENOMEM)
		return filter_err;
	for (size_t i = 0; i < profile->n_functions; i++) {
		if (!is_as_linked(&profile->functions[i]))
			continue;
		err = name_function(profile, demangler, &profile->functions[i]);
		if (err)
			return err;
	}
	return filter_err;
}
