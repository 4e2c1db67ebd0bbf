// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the suppression that hides each stack. */
#include <stdlib.h>

#include "cleanup.h"
#include "filter_internal.h"
#include "profile.h"
#include "suppressions.h"

/* Matches in LeakSanitizer's order: the module, then functions and source files. */
static int suppress_frame(const struct profile *profile, const struct profile_frame *frame,
			  const struct suppressions *suppressions)
{
	int found = -1;

	if (frame->module)
		found = suppressions__find(suppressions, profile->modules[frame->module - 1].path);
	for (__u32 i = 0; i < frame->n_lines && found < 0; i++) {
		const struct profile_line *line = &frame->lines[i];
		const struct profile_function *function = &profile->functions[line->function - 1];

		found = suppressions__find(suppressions, function->name);
		if (found < 0)
			found = suppressions__find(suppressions, function->full_name);
		if (found < 0)
			found = suppressions__find(suppressions, function->symbol);
		if (found < 0 && line->file)
			found = suppressions__find(suppressions,
						   profile->files[line->file - 1].path);
	}
	return found;
}

int *filter__suppressed_stacks(const struct profile *profile,
			       const struct suppressions *suppressions)
{
	int *stacks = malloc((profile->n_stacks + 1) * sizeof(*stacks));
	_cleanup_(free_ptr) int *frames = malloc((profile->n_frames + 1) * sizeof(*frames));

	if (!stacks || !frames) {
		free(stacks);
		return NULL;
	}
	for (size_t i = 0; i < profile->n_frames; i++)
		frames[i] = suppress_frame(profile, &profile->frames[i], suppressions);
	for (size_t i = 0; i < profile->n_stacks; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		stacks[i] = -1;
		for (__u32 j = 0; j < stack->n_frames && stacks[i] < 0; j++)
			stacks[i] = frames[stack->frames[j] - 1];
	}
	return stacks;
}
