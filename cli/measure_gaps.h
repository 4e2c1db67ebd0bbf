/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences for the coverage gaps of a measurement. */
#ifndef ALLOCPROF_MEASURE_GAPS_H
#define ALLOCPROF_MEASURE_GAPS_H

#include <stdbool.h>

struct measure;
struct profile;

typedef void (*measure_gaps_say)(void *context, const char *sentence);

/* Calls @say for each gap that concerns regions, or for each other gap, except lost calls and
 * blocks that are not followed. */
void measure_gaps__visit(const struct profile *profile, bool of_regions, measure_gaps_say say,
			 void *context);

/* Reports all gaps on stderr. */
void measure_gaps__report(const struct profile *profile);

/* Does the same after a run. Unless the user asked for quiet, it also prints what the process had
 * beside the measured memory, and that the process goes on. */
void measure__report_gaps(const struct measure *measure, const struct profile *profile);

/* Prints one line on functions whose probes the kernel single-steps, if that took more than a
 * tenth of the time. */
void measure__tell_stepped(const struct measure *measure, const struct profile *profile);

/* Prints one line that suggests the engine preload if it could have measured the command and the
 * probes have taken more processor time than the command itself. */
void measure__suggest_engine(const struct measure *measure, const struct profile *profile);

#endif
