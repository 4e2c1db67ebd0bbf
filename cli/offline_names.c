// SPDX-License-Identifier: GPL-3.0-or-later
#include "offline_names.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "message.h"
#include "profile_offline.h"
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

static void take_missing(const char *why, void *context)
{
	const bool *says_missing = context;

	if (*says_missing)
		message__print("%s", why);
}

int offline_names__add(struct profile *profile, const struct symbol_options *options,
		       bool says_missing, struct error *error)
{
	struct profile_offline_options offline = {
		.debug_dirs = options->debug_dirs,
		.missing = take_missing,
		.context = &says_missing,
	};
	_cleanup_(end_lookup) struct symbol_lookup *lookup = symbol_options__begin(options);
	_cleanup_(free_symbols) struct symbols *symbols = NULL;
	int err = -ENOMEM;

	if (lookup)
		symbols = symbols__new(symbol_lookup__options(lookup));
	if (symbols)
		err = profile__symbolize_offline(profile, symbols, &offline);
	if (err)
		return error__set(error, err, "cannot look names up: %s",
				  err == -EINTR ? "interrupted" : strerror(-err));
	symbol_options__report(symbols);
	return demangling__apply(options->demangle_command, profile, error);
}
