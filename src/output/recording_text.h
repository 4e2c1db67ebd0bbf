/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes text about recordings, of one run and of several. */
#ifndef ALLOCPROF_RECORDING_TEXT_H
#define ALLOCPROF_RECORDING_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "array.h"

struct profile;
struct terminal;

/* Text that a picture, or a file for another viewer, has about the recording from which it was
 * made. */

/* Returns the command, or the attached process. The caller frees it; NULL: there is no memory. */
char *recording_text__title(const struct profile *profile);
/* Works like recording_text__title(), but returns NULL also if neither is known, and omits the
 * number of the run. */
char *recording_text__subject(const struct profile *profile);
/*
 * Sets *@text to sentences, one per line, about an attached process: the memory that it had before
 * the recording, and its children that were not measured. Unless @attached_only, also about calls
 * for impossible sizes, what ended a command, and the memory that it and allocprof shared. "" if
 * there is nothing to say. The caller frees *@text. Returns 0 or -ENOMEM.
 */
int recording_text__beside(const struct profile *profile, bool attached_only, char **text);
/* Returns whether processes that were measured go on. */
bool recording_text__has_left(const struct profile *profile);
/* Sets *@text to a clause, without a full stop, about how a process goes on when its recording has
 * ended. The caller frees it. Returns 0 or -ENOMEM. */
int recording_text__goes_on(const struct profile *profile, char **text);
int recording_text__print_beside(const struct profile *profile, const struct terminal *terminal);
/*
 * Sets *@text to a sentence, each on a line, for each runtime with a heap of its own that was seen,
 * but for those that the program has certainly not started. The caller frees it. Returns 0 or
 * -ENOMEM.
 */
int recording_text__own_heaps(const struct profile *profile, char **text);
/*
 * Sets *@text to sentences, one per line, that say whether the numbers are estimates, and what is
 * missing. "" if there are none. The caller frees *@text. Returns 0 or -ENOMEM.
 */
int recording_text__remarks(const struct profile *profile, char **text);

/* Text about recordings of several runs. */

#define RUNS_TEXT_SIZE 64

/* Writes "run 2 of 5" to @text if @profile is one run of a recording of several; else returns
 * false. */
bool runs_text__taken(const struct profile *profile, char text[RUNS_TEXT_SIZE]);
/* Stores the range of the runs' numbers of events. Returns 0 or -ENOMEM. */
int runs_text__range(const struct profile *profile, struct figure_range *range);
/* Prints "5 runs: 75,001 events each time" or "3 of 5 runs: 74,990 to 75,020 events, median
 * 75,001, spread 30". Returns 0 or -ENOMEM. */
int runs_text__print(const struct profile *profile, FILE *to);
/*
 * Prints a line that says which run @profile is, or that its figures are sums of several; nothing
 * for a recording of one run. Returns 0 or -ENOMEM.
 */
int runs_text__print_subject(const struct profile *profile, FILE *to);

#endif
