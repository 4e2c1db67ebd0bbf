// SPDX-License-Identifier: GPL-3.0-or-later
/* Demangles the names of a profile's functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "demangle.h"
#include "profile.h"

/* Sets @linked[id - 1] of each function that a frame in a file has. Those of perf maps alone have names, not symbols, but
 * for what runtimes compile from programs of other languages (WebAssembly). */
static void find_linked(const struct profile *profile, bool *linked)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		for (__u32 j = 0; frame->module && j < frame->n_lines; j++)
			linked[frame->lines[j].function - 1] = true;
	}
}

/* Whether the function is to be demangled: it has the name that it is linked by. */
static bool is_symbol(const struct profile_function *function, const bool *linked)
{
	return !strcmp(function->name, function->symbol) &&
	       (linked[function->id - 1] || demangle__looks_mangled(function->symbol));
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
	_cleanup_(free_ptr) bool *linked = calloc(profile->n_functions + 1, sizeof(*linked));
	int err, filter_err;

	if (!linked)
		return -ENOMEM;
	find_linked(profile, linked);
	for (size_t i = 0; i < profile->n_functions; i++) {
		if (!is_symbol(&profile->functions[i], linked))
			continue;
		err = demangler__add(demangler, profile->functions[i].symbol);
		if (err)
			return err;
	}
	filter_err = demangler__run(demangler, error);
	if (filter_err == -ENOMEM)
		return filter_err;
	for (size_t i = 0; i < profile->n_functions; i++) {
		if (!is_symbol(&profile->functions[i], linked))
			continue;
		err = name_function(profile, demangler, &profile->functions[i]);
		if (err)
			return err;
	}
	return filter_err;
}
