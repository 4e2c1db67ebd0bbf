/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Says which events a profile lacks, and has the sentence of each gap. */
#ifndef ALLOCPROF_COMPLETENESS_H
#define ALLOCPROF_COMPLETENESS_H

#include <stdbool.h>

#include "gaps.h"

struct profile;
struct profile_gap;

enum completeness_flags {
	COMPLETENESS_STRICT = 1, /* always mention incomplete stacks */
	COMPLETENESS_BRIEF = 2,	 /* omit the reasons */
	/* The output or the selection depends on when blocks began and ended. */
	COMPLETENESS_TIMES = 4,
	COMPLETENESS_HISTOGRAMS = 8, /* sizes and lifetimes are shown as histograms */
};

/* The sentence about a data file that was changed after it was written. */
#define ALTERED_NOTE                                                                               \
	"this data file is not as it was recorded: its digest does not fit what is in it; do not rely on its numbers"

/*
 * Sets *@text to sentences, one per line, about what @profile lacks for output with @flags: lost
 * events, allocators without probes, blocks that were not followed, and, if there are many,
 * incomplete stacks; with reasons. "" if nothing is missing. The caller frees *@text. Returns 0 or
 * -ENOMEM.
 */
int completeness__lines(const struct profile *profile, unsigned int flags, char **text);
/* Returns whether @profile has every call of the window and, with --live, every block. Stacks may
 * still be incomplete. */
bool completeness__is_complete(const struct profile *profile);
/* Returns whether the command of each run ended before its recording did. False for processes that were attached to. */
bool completeness__has_ended(const struct profile *profile);
/*
 * Returns a sentence that says that the profile is sampled, which the caller frees; NULL if it is
 * not sampled, or there is no memory.
 */
char *completeness__sampled(const struct profile *profile);

/* Sentences for gaps. */

/* Returns the gap's sentence on one line, without a full stop, which the caller frees; NULL if
 * there is no memory. */
char *gap_text__sentence(const struct profile_gap *gap);
/* Returns the text that follows the sentence: what the gap does to the numbers, or that they are
 * not complete. */
const char *gap_text__effect(enum gap kind);
/* Returns the same in brief, to precede the sentence: "not complete". */
const char *gap_text__verdict(enum gap kind);

#endif
