// SPDX-License-Identifier: GPL-3.0-or-later
#include "recording_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "profile.h"
#include "runs_text.h"

char *recording_text__title(const struct profile *profile)
{
	const char *command = profile__meta(profile, "command");
	const char *pid = profile__meta(profile, "attached_pid");
	char run[RUNS_TEXT_SIZE], *text;

	if (command && runs_text__taken(profile, run))
		return asprintf(&text, "%s, %s", command, run) < 0 ? NULL : text;
	if (command || !pid)
		return strdup(command ?: "allocprof");
	return asprintf(&text, "process %s", pid) < 0 ? NULL : text;
}

int recording_text__remarks(const struct profile *profile, char **text)
{
	_cleanup_(free_ptr) char *missing = NULL, *sampled = NULL;
	int err = completeness__lines(profile, COMPLETENESS_BRIEF, &missing);

	if (err)
		return err;
	sampled = completeness__sampled(profile);
	if (asprintf(text, "%s%s%s", sampled ?: "", sampled ? "\n" : "", missing) < 0)
		return -ENOMEM;
	return 0;
}
