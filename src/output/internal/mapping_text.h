/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences about the mappings of a report. */
#ifndef ALLOCPROF_MAPPING_TEXT_H
#define ALLOCPROF_MAPPING_TEXT_H

struct report_entry;
struct report_output;

/* Says what the selected live mappings are for, and of a peak that there are two. Prints nothing
 * if the profile has no mappings. */
void mapping_text__live(const struct report_output *output);

/* Prints the entry's function and, of live mappings, what they are for, such as "mmap (thread
 * stacks)". */
void mapping_text__function(const struct report_output *output, const struct report_entry *entry);

#endif
