/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For the writers of formats: the selected stacks one after the other, and texts by number. */
#ifndef ALLOCPROF_EXPORT_INTERNAL_H
#define ALLOCPROF_EXPORT_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "export.h"
#include "hash_table.h"
#include "profile.h"

struct error;
struct export_input;

/* Each writes @input to @to; 0, -ENOMEM, or the negative errno of a write. The caller finds errors of
 * @to that remain, and flushes it. */
int export_pprof__write(const struct export_input *input, FILE *to);
int export_speedscope__write(const struct export_input *input, FILE *to);
int export_collapsed__write(const struct export_input *input, FILE *to);
int export_json__write(const struct export_input *input, FILE *to);
int export_dhat__write(const struct export_input *input, FILE *to);
int export_firefox__write(const struct export_input *input, FILE *to);
int export_heaptrack__write(const struct export_input *input, FILE *to);

/* -EFBIG with @error set if there are more blocks than the format has use for. */
int export_heaptrack__check(const struct export_input *input, struct error *error);

/* The selected blocks of one count: of one stack, process, thread name and function. */
struct export_sample {
	const struct profile_count *count;
	const struct selection *selected;
	const struct profile_process *process;
	const char *thread;
	const char *function; /* of the allocator */
	const char *end;      /* why the stack is incomplete, or NULL */
	/* Innermost first; none if not even the caller is known. */
	const __u32 *locations; /* indexes into the view's locations; NULL without them */
	const __u32 *labels;	/* indexes into the view's labels */
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
 * Numbers the locations (or labels) that occur in samples from 0, in the order of the view: *@numbers,
 * to be freed, by index, else EXPORT_UNUSED. 0 or -ENOMEM.
 */
int export__number_locations(const struct export_input *input, __u32 **numbers, size_t *n);
int export__number_labels(const struct export_input *input, __u32 **numbers, size_t *n);

/* A line of a location; NULL if it has no name. */
const struct profile_line *export__line(const struct export_input *input, __u32 location);
/* The address of the call (or where a signal came): an ELF virtual address of the frame's module. */
__u64 export__address(const struct profile_frame *frame);

/* Whether the profile says what became of blocks. */
bool export__has_live(const struct export_input *input);
/* Nanoseconds since 1970 of the recording's start; 0 if unknown. */
__u64 export__start_ns(const struct export_input *input);
/* Sets the text to the title, followed by the remarks in brackets, for formats that have nowhere
 * else for remarks. The caller frees it. 0 or -ENOMEM. */
int export__headline(const struct export_input *input, char **text);

/* Zeroed is empty. To be released. */
struct string_ids {
	const char **texts; /* by number - 1; the caller's, which must outlive it */
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

/* The number of @text, from 1. 0 or -ENOMEM. */
int string_ids__add(struct string_ids *ids, const char *text, __u32 *id);
void string_ids__release(struct string_ids *ids);

#endif
