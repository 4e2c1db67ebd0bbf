// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes before.data and after.data, and of three runs each before_runs.data and after_runs.data, to the
 * directory named. */
#include <stdio.h>

#include "data_file.h"
#include "diff_story.h"
#include "error.h"
#include "profile.h"

static int write_one(const char *directory, const char *name, bool after, unsigned int n_runs)
{
	struct profile *profile = diff_story__new(after, n_runs);
	struct error error = { 0 };
	char path[4096];
	int err;

	if (!profile)
		return 2;
	snprintf(path, sizeof(path), "%s/%s.data", directory, name);
	err = data_file__write(profile, path, &error);
	if (err)
		fprintf(stderr, "%s\n", error.text);
	profile__free(profile);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	return write_one(argv[1], "before", false, 1) | write_one(argv[1], "after", true, 1) |
	       write_one(argv[1], "before_runs", false, 3) |
	       write_one(argv[1], "after_runs", true, 3);
}
