// SPDX-License-Identifier: GPL-3.0-or-later
#include "offline_names.h"

#include "message.h"
#include "profile_offline.h"
#include "symbol_options.h"

struct naming {
	struct profile *profile;
	struct profile_offline_options options;
};

static void print_missing(const char *why, void *context)
{
	message__print("%s", why);
}

static void ignore_missing(const char *why, void *context)
{
}

static int look_up(struct symbols *symbols, void *context)
{
	const struct naming *naming = context;

	return profile__symbolize_offline(naming->profile, symbols, &naming->options);
}

int offline_names__add(struct profile *profile, const struct symbol_options *options,
		       bool says_missing, struct error *error)
{
	struct naming naming = {
		.profile = profile,
		.options = {
			.debug_dirs = options->debug_dirs,
			.missing = says_missing ? print_missing : ignore_missing,
		},
	};

	return symbol_options__look_up(options, profile, look_up, &naming, error);
}
