// SPDX-License-Identifier: GPL-3.0-or-later
#include "recording.h"

#include <errno.h>
#include <string.h>

#include "data_file.h"
#include "error.h"
#include "message.h"
#include "profile_runs.h"
#include "session_profile.h"
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

int recording__write(const struct session *session, char *const argv[],
		     const struct symbol_options *symbols, bool names, const char *path,
		     struct profile **out, struct error *error)
{
	struct data_file_version version;
	struct error why_unnamed = { 0 };
	struct profile *profile;
	int err = recording__profile(session, argv, symbols, false, NULL, &profile, error);

	if (!err && !names)
		err = data_file__write(profile, path, error);
	else if (!err)
		err = data_file__write_first(profile, path, &version, error);
	if (err)
		return err;
	*out = profile;
	if (!names)
		return 0;
	/* The recording is complete without names, which can be looked up later. */
	if (name_frames(session, symbols, true, profile, &why_unnamed)) {
		message__print("%s; `allocprof symbolize` can do it later", why_unnamed.text);
		return 0;
	}
	return data_file__write_names(profile, path, &version, error);
}
