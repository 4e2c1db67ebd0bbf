/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Says which events a profile lacks. */
#ifndef ALLOCPROF_COMPLETENESS_H
#define ALLOCPROF_COMPLETENESS_H

#include <stdbool.h>

struct profile;

/*
 * What @profile lacks, a sentence per line, "" if nothing: lost events and allocators without probes,
 * incomplete stacks if they are many or @strict, all with their reasons unless @brief. To be freed. 0
 * or -ENOMEM.
 */
int completeness__lines(const struct profile *profile, bool strict, bool brief, char **text);
/* Whether @profile has every call. Stacks may still be incomplete. */
bool completeness__has_all_calls(const struct profile *profile);
/*
 * A sentence that says that the profile is sampled, or NULL if it is not (or without memory). To be
 * freed.
 */
char *completeness__sampled(const struct profile *profile);

#endif
