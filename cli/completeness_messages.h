/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages on stderr about what a profile lacks. */
#ifndef ALLOCPROF_COMPLETENESS_MESSAGES_H
#define ALLOCPROF_COMPLETENESS_MESSAGES_H

#include <stdbool.h>

struct profile;

/*
 * Prints what @profile lacks; @flags are those of enum completeness_flags. Each sentence begins with the file @name, unless
 * that is NULL. Returns the exit status: EXIT_INCOMPLETE with COMPLETENESS_STRICT if anything is missing, or if figures
 * contradict each other or the data file is not as it was written.
 */
int completeness_messages__print(const struct profile *profile, const char *name,
				 unsigned int flags);
/* For commands that print nothing of what is complete: says of a file that is not as it was written that it is not. The exit
 * status. */
int completeness_messages__print_altered(const struct profile *profile);
/* Prints that @profile is sampled, if it is. */
void completeness_messages__print_sampled(const struct profile *profile, const char *name);
/* Says where calls are if all that @profile has are frees, which have no cost. */
void completeness_messages__print_frees(const struct profile *profile, const char *name);
/* Names the heaps of runtimes that no allocator serves, and the number of threads that are not counted by their own names. */
void completeness_messages__print_runtimes(const struct profile *profile);
/* Prints what recording_text__beside() makes. */
void completeness_messages__print_beside(const struct profile *profile, bool attached_only);

#endif
