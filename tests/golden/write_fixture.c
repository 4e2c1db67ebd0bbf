// SPDX-License-Identifier: GPL-3.0-or-later
/* write_fixture FILE [NAME]: writes the fixture, or that of fixture_live.h called NAME, to FILE. */
#include <stdio.h>

#include "data_file.h"
#include "error.h"
#include "fixture.h"
#include "fixture_live.h"

int main(int argc, char **argv)
{
	struct profile *profile = argc == 3 ? fixture__live(argv[2]) : fixture__new();
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
