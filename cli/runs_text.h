/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words about a recording of several runs. */
#ifndef ALLOCPROF_RUNS_TEXT_H
#define ALLOCPROF_RUNS_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "figures.h"

struct profile;

#define RUNS_TEXT_SIZE 64

/* "run 2 of 5" where @profile was taken out of a recording of several; else false. */
bool runs_text__taken(const struct profile *profile, char text[RUNS_TEXT_SIZE]);
/* What the events of each run range over. 0 or -ENOMEM. */
int runs_text__range(const struct profile *profile, struct figure_range *range);
/* "5 runs: 75,001 events each time", "3 of 5 runs: 74,990 to 75,020 events, median 75,001, spread 30".
 * 0 or -ENOMEM. */
int runs_text__print(const struct profile *profile, FILE *to);
/* What a reader of @profile needs to know of its runs, a line, or nothing where it has one run: which one
 * was taken out of it, or what its figures are. 0 or -ENOMEM. */
int runs_text__print_subject(const struct profile *profile, FILE *to);

#endif
