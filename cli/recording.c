// SPDX-License-Identifier: GPL-3.0-or-later
#include "recording.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "profile_runs.h"
#include "session_profile.h"
#include "symbol_options.h"
#include "symbols.h"

static void free_symbols(struct symbols **symbols)
{
	symbols__free(*symbols);
}

static void end_lookup(struct symbol_lookup **lookup)
{
	symbol_options__end(*lookup);
}

static int name_frames(const struct session *session, const struct symbol_options *options,
		       bool names, struct profile *profile, struct error *error)
{
	_cleanup_(end_lookup) struct symbol_lookup *lookup = symbol_options__begin(options);
	_cleanup_(free_symbols) struct symbols *symbols = NULL;
	int err = -ENOMEM;

	if (lookup)
		symbols = symbols__new(symbol_lookup__options(lookup));
	if (symbols)
		err = session__symbolize(session, symbols, names);
	if (err)
		return error__set(error, err, "cannot look names up: %s", strerror(-err));
	return demangling__apply(options->demangle_command, profile, error);
}

int recording__profile(const struct session *session, char *const argv[],
		       const struct symbol_options *symbols, bool names,
		       const struct profile *named, struct profile **out, struct error *error)
{
	struct profile *profile = NULL;
	int err = session__profile(session, argv, &profile);

	if (!err && named)
		err = profile__borrow_names(profile, named);
	if (err)
		return error__set(error, err, "cannot make a profile of the recording: %s",
				  strerror(-err));
	err = name_frames(session, symbols, names, profile, error);
	if (!err)
		*out = profile;
	return err;
}
