/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text about recordings, of one run and of several. */
#ifndef ALLOCPROF_RECORDING_TEXT_H
#define ALLOCPROF_RECORDING_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "array.h"

struct profile;
struct terminal;

/* What a picture or a file for another viewer says about the recording that it was made from. */

/* The command, or the attached process. To be freed; NULL on ENOMEM. */
char *recording_text__title(const struct profile *profile);
/* The same, but NULL also where neither is known, and without a number of the run. */
char *recording_text__subject(const struct profile *profile);
/*
 * Sets *@text to sentences, one per line, about what an attached process had before and has beside the recording: its memory,
 * and children that were not measured; and unless @attached_only calls for impossible sizes, what ended a command, and the
 * memory that it and allocprof shared. "" if there is nothing to say. The caller frees it. 0 or -ENOMEM.
 */
int recording_text__beside(const struct profile *profile, bool attached_only, char **text);
/* How a process goes on when its recording has ended: sets *@text to a clause without a full stop; the rest as above. */
int recording_text__goes_on(const struct profile *profile, char **text);
int recording_text__print_beside(const struct profile *profile, const struct terminal *terminal);
/*
 * Sets *@text to a sentence for each runtime that has a heap of its own, as the lines "RUNTIME PATH" of @own_heaps
 * tell, which may be NULL.
 */
int recording_text__own_heaps(const char *own_heaps, char **text);
/*
 * Sets *@text to sentences, one per line: that the numbers are estimates, and what is missing. "" if
 * there are none. The caller frees it. 0 or -ENOMEM.
 */
int recording_text__remarks(const struct profile *profile, char **text);

/* Text about recordings of several runs. */

#define RUNS_TEXT_SIZE 64

/* "run 2 of 5" if @profile is one run of a recording of several; else returns false. */
bool runs_text__taken(const struct profile *profile, char text[RUNS_TEXT_SIZE]);
/* The range of the runs' numbers of events. 0 or -ENOMEM. */
int runs_text__range(const struct profile *profile, struct figure_range *range);
/* "5 runs: 75,001 events each time", "3 of 5 runs: 74,990 to 75,020 events, median 75,001, spread 30".
 * 0 or -ENOMEM. */
int runs_text__print(const struct profile *profile, FILE *to);
/*
 * Prints a line that says which run @profile is, or that its figures are sums of several; nothing
 * for a recording of one run. 0 or -ENOMEM.
 */
int runs_text__print_subject(const struct profile *profile, FILE *to);

#endif
