/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages on stderr about what a profile lacks. */
#ifndef ALLOCPROF_COMPLETENESS_MESSAGES_H
#define ALLOCPROF_COMPLETENESS_MESSAGES_H

#include <stdbool.h>

struct profile;

/*
 * Prints what @profile lacks; @flags is a mask of enum completeness_flags. Each sentence begins
 * with the file @name, unless that is NULL. Returns the exit status: EXIT_INCOMPLETE if figures
 * contradict each other, if the data file was altered after it had been written, or, with
 * COMPLETENESS_STRICT, if anything is missing; else EXIT_GOOD.
 */
int completeness_messages__print(const struct profile *profile, const char *name,
				 unsigned int flags);
/* Prints that the data file was altered after it had been written, if it was. For commands whose
 * output does not say what is complete. Returns the exit status. */
int completeness_messages__print_altered(const struct profile *profile);
/* Prints that @profile is sampled, if it is. */
void completeness_messages__print_sampled(const struct profile *profile, const char *name);
/* Prints where the calls are if all that @profile has are frees, which have no cost. */
void completeness_messages__print_frees(const struct profile *profile, const char *name);
/* Prints the heaps of runtimes that no allocator serves, and the number of threads that are not
 * counted under their own names. */
void completeness_messages__print_runtimes(const struct profile *profile);
/* Prints the text that recording_text__beside() makes. */
void completeness_messages__print_beside(const struct profile *profile, bool attached_only);

#endif
