/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences for the coverage gaps of a measurement. */
#ifndef ALLOCPROF_MEASURE_GAPS_H
#define ALLOCPROF_MEASURE_GAPS_H

#include <stdbool.h>
#include <stddef.h>

#include "recording_text.h"

struct measure;
struct session;
struct session_results;

typedef void (*measure_gaps_say)(void *context, const char *sentence);

/* Calls @say for each gap, of regions or all others, but for calls that were lost and blocks that are not followed. */
void measure_gaps__visit(const struct session_results *results, bool of_regions,
			 measure_gaps_say say, void *context);
/* Prints the sentence as a message: a measure_gaps_say without a context. */
void measure_gaps__print(void *context, const char *sentence);

/* For recording_text__beside(); @pid, of @size bytes, is what it refers to. */
struct recording_target measure_gaps__target(const struct session_results *results, char *pid,
					     size_t size);

/* Reports all gaps on stderr, and unless the user asked for quiet what a process has beside, and that it goes on. */
void measure__report_gaps(const struct measure *measure, const struct session *session,
			  const struct session_results *results);

/* One line that names the engine preload, where it could have measured the command and the probes have taken more
 * processor time than the command itself. */
void measure__suggest_engine(const struct measure *measure, const struct session *session,
			     const struct session_results *results);

#endif
