// SPDX-License-Identifier: GPL-3.0-or-later
/* Folded stacks, as `allocprof folded` prints them. */
#include "export_formats.h"
#include "export_input.h"
#include "folded.h"

int export_collapsed__write(const struct export_input *input, FILE *to)
{
	const struct folded_options options = { .cost = input->cost, .counts = input->counts };

	return folded__write(input->profile, input->view, &options, to);
}
