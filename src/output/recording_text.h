/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a picture or a file for another viewer says about the recording that it was made from. */
#ifndef ALLOCPROF_RECORDING_TEXT_H
#define ALLOCPROF_RECORDING_TEXT_H

#include <linux/types.h>
#include <stdbool.h>

struct profile;
struct terminal;

/* What is known of a target beside its calls; 0 or NULL: there was none, or it is not known. */
struct recording_target {
	const char *pid;      /* of a process that was attached to */
	__u64 rss_bytes;      /* of it, resident when the recording began */
	const char *children; /* of it: lines "PID COMMAND" */
	__u64 impossible;     /* calls for more than any process can have */
	int exit_signal;      /* that ended a command */
	__u64 oom_kills;   /* processes of its control group that the kernel has ended meanwhile */
	__u64 group_bytes; /* limit of memory of that group */
	bool is_in_group;  /* allocprof is in it, too */
	__u64 own_bytes;   /* memory of allocprof's */
};

/* The command, or the attached process. To be freed; NULL on ENOMEM. */
char *recording_text__title(const struct profile *profile);
/* The same, but NULL also where neither is known, and without a number of the run. */
char *recording_text__subject(const struct profile *profile);
/*
 * Sets *@text to sentences, one per line, about what an attached process had before and has beside the recording: its memory,
 * and children that were not measured; calls for impossible sizes, what ended a command, and the memory that it and allocprof shared. "" if there is nothing to say. The caller frees it. 0 or -ENOMEM.
 */
int recording_text__beside(const struct recording_target *target, char **text);
/* The same of a profile's target. */
int recording_text__profile_beside(const struct profile *profile, char **text);
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
