/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The selected stacks of an export, one after the other, and what is known of the recording. */
#ifndef ALLOCPROF_EXPORT_SAMPLES_H
#define ALLOCPROF_EXPORT_SAMPLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "export_input.h"
#include "profile.h"

/* The selected blocks of one count: of one stack, process, thread name and function. */
struct export_sample {
	const struct profile_count *count;
	const struct selection *selected;
	const struct profile_process *process;
	const char *thread;
	const char *function; /* of the allocator */
	const char *end;      /* why the stack is incomplete, or NULL */
	/* Innermost first; none if not even the caller is known. */
	const __u32 *places; /* indexes into the view's places; NULL without them */
	const __u32 *labels; /* indexes into the view's labels */
	size_t n_frames;
};

/* What stands for a stack without frames. */
#define EXPORT_NO_FRAME "[unknown]"

/*
 * Stores the sample at *@at, which is 0 for the first, and advances *@at. Calls that free, and what
 * is not selected, are passed over. False at the end.
 */
bool export__next(const struct export_input *input, size_t *at, struct export_sample *sample);

/* No number. */
#define EXPORT_UNUSED UINT32_MAX

/*
 * Numbers the places (or labels) that occur in samples from 0, in the order of the view: *@numbers,
 * to be freed, by index, else EXPORT_UNUSED. 0 or -ENOMEM.
 */
int export__number_places(const struct export_input *input, __u32 **numbers, size_t *n);
int export__number_labels(const struct export_input *input, __u32 **numbers, size_t *n);

/* A line of a place; NULL if it has no name. */
const struct profile_line *export__line(const struct export_input *input, __u32 place);
/* The address of the call (or where a signal came): an ELF virtual address of the frame's module. */
__u64 export__address(const struct profile_frame *frame);

/* Whether the profile says what became of blocks. */
bool export__has_live(const struct export_input *input);
/* Nanoseconds since 1970 of the recording's start; 0 if unknown. */
__u64 export__start_ns(const struct export_input *input);
/* Sets the text to the title, followed by the remarks in brackets, for formats that have no other
 * place for remarks. The caller frees it. 0 or -ENOMEM. */
int export__headline(const struct export_input *input, char **text);

#endif
