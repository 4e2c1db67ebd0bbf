/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text about recordings of several runs. */
#ifndef ALLOCPROF_RUNS_TEXT_H
#define ALLOCPROF_RUNS_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "array.h"

struct profile;

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
