// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the fixture profile, or with a second word the case study, to the file named. */
#include <stdio.h>

#include "case_study.h"
#include "data_file.h"
#include "error.h"
#include "fixture.h"

int main(int argc, char **argv)
{
	struct profile *profile = argc > 2 ? case_study__new() : fixture__new();
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
