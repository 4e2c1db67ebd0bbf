// SPDX-License-Identifier: GPL-3.0-or-later
/* write_fixture FILE [NAME]: writes the fixture, the case study, the runs or that of fixture_live.h called
 * NAME. */
#include <stdio.h>
#include <string.h>

#include "case_study.h"
#include "data_file.h"
#include "error.h"
#include "fixture.h"
#include "fixture_live.h"
#include "runs_story.h"

int main(int argc, char **argv)
{
	struct profile *profile = argc < 3			   ? fixture__new()
				  : !strcmp(argv[2], "case-study") ? case_study__new()
				  : !strcmp(argv[2], "runs")	   ? runs_story__new()
								   : fixture__live(argv[2]);
	struct error error = { 0 };
	int err;

	if (argc < 2 || !profile)
		return 2;
	err = data_file__write(profile, argv[1], &error);
	if (err)
		fprintf(stderr, "%s\n", error.text);
	profile__free(profile);
	return err ? 1 : 0;
}
