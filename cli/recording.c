// SPDX-License-Identifier: GPL-3.0-or-later
#include "recording.h"

#include <string.h>

#include "data_file.h"
#include "error.h"
#include "message.h"
#include "profile_runs.h"
#include "session.h"
#include "symbol_options.h"

struct naming {
	const struct session *session;
	bool names;
};

static int look_up(struct symbols *symbols, void *context)
{
	const struct naming *naming = context;

	return session__symbolize(naming->session, symbols, naming->names);
}

static int name_frames(const struct session *session, const struct symbol_options *options,
		       bool names, struct profile *profile, struct error *error)
{
	return symbol_options__look_up(options, profile, look_up,
				       &(struct naming){ session, names }, error);
}

int recording__name(const struct session *session, const struct symbol_options *symbols, bool names,
		    const struct profile *named, struct error *error)
{
	struct profile *profile = session__profile(session);
	int err = named ? profile__borrow_names(profile, named) : 0;

	if (err)
		return error__set(error, err, "cannot make a profile of the recording: %s",
				  strerror(-err));
	return name_frames(session, symbols, names, profile, error);
}

int recording__write(const struct session *session, const struct symbol_options *symbols,
		     bool names, const char *path, struct error *error)
{
	struct profile *profile = session__profile(session);
	struct data_file_version version;
	struct error why_unnamed = { 0 };
	int err = recording__name(session, symbols, false, NULL, error);

	if (!err && !names)
		err = data_file__write(profile, path, error);
	else if (!err)
		err = data_file__write_first(profile, path, &version, error);
	if (err || !names)
		return err;
	/* Without names the recording is complete nevertheless, since names can be looked up
	 * later. */
	if (name_frames(session, symbols, true, profile, &why_unnamed)) {
		message__print("%s; `allocprof symbolize` can do it later", why_unnamed.text);
		return 0;
	}
	return data_file__write_names(profile, path, &version, error);
}
