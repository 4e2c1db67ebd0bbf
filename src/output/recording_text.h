/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a picture or a file for another viewer says about the recording that it was made from. */
#ifndef ALLOCPROF_RECORDING_TEXT_H
#define ALLOCPROF_RECORDING_TEXT_H

#include <linux/types.h>
#include <stdbool.h>

struct profile;
struct terminal;

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
int recording_text__print_beside(const struct profile *profile, const struct terminal *terminal);
/*
 * Likewise a sentence for each runtime whose heap is no allocator's, by the lines "RUNTIME PATH" of @own_heaps, which may be
 * NULL.
 */
int recording_text__own_heaps(const char *own_heaps, char **text);
/*
 * Sets *@text to sentences, one per line: that the numbers are estimates, and what is missing. "" if
 * there are none. The caller frees it. 0 or -ENOMEM.
 */
int recording_text__remarks(const struct profile *profile, char **text);

#endif
