/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helps the writers of formats: iterates over the selected stacks, and numbers texts. */
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

/* Each function writes @input to @to, and returns 0, -ENOMEM, or the negative errno of a write.
 * The caller checks @to for further errors, and flushes it. */
int export_pprof__write(const struct export_input *input, FILE *to);
int export_otlp__write(const struct export_input *input, FILE *to);
int export_speedscope__write(const struct export_input *input, FILE *to);
int export_json__write(const struct export_input *input, FILE *to);
int export_dhat__write(const struct export_input *input, FILE *to);
int export_firefox__write(const struct export_input *input, FILE *to);
int export_heaptrack__write(const struct export_input *input, FILE *to);

/* Checks the input. Returns -EFBIG with @error set if there are more blocks than the format can
 * sensibly have. */
int export_heaptrack__check(const struct export_input *input, struct error *error);

/* The selected blocks of one count: of one stack, process, thread name and function. */
struct export_sample {
	const struct profile_count *count;
	const struct selection *selected;
	const struct profile_process *process;
	const char *thread;
	const char *function; /* function of the allocator */
	const char *type;     /* type of the blocks, or NULL */
	const char *end;      /* why the stack is incomplete, or NULL */
	/* Locations and labels, innermost first; none if not even the caller is known. */
	const __u32 *locations; /* indexes of the view's locations; NULL if it has none */
	const __u32 *labels;	/* indexes of the view's labels */
	size_t n_frames;
};

/* Stands for a stack without frames. */
#define EXPORT_NO_FRAME "[unknown]"

/*
 * Stores the sample at *@at, which is 0 for the first, and advances *@at. Skips calls that free,
 * and what is not selected. Returns false at the end.
 */
bool export__next(const struct export_input *input, size_t *at, struct export_sample *sample);

/* Stands for no number. */
#define EXPORT_UNUSED UINT32_MAX

/*
 * Numbers the locations (or labels) that occur in samples from 0 on, in the order of the view.
 * *@numbers, which the caller frees, has the number at each index, or EXPORT_UNUSED. Returns 0 or
 * -ENOMEM.
 */
int export__number_locations(const struct export_input *input, __u32 **numbers, size_t *n);
int export__number_labels(const struct export_input *input, __u32 **numbers, size_t *n);

/* Returns the source line of a location; NULL if it has no name. */
const struct profile_line *export__line(const struct export_input *input, __u32 location);
/* Returns the address of the call, or at which a signal came, as ELF virtual address of the
 * frame's module. */
__u64 export__address(const struct profile_frame *frame);

/* Returns whether the profile knows what became of blocks. */
bool export__has_live(const struct export_input *input);
/* Returns when the recording started, in nanoseconds since 1970; 0 if that is unknown. */
__u64 export__start_ns(const struct export_input *input);
/* Sets *@text to the title, followed by the remarks in brackets, for formats that have no other
 * place for remarks. The caller frees it. Returns 0 or -ENOMEM. */
int export__headline(const struct export_input *input, char **text);

/* Numbers of texts. Zeroed it is empty. The caller releases it. */
struct string_ids {
	/* Texts by number - 1, which belong to the caller and must outlive this. */
	const char **texts;
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

/* Stores the number of @text, from 1, which gets one if it is new. Returns 0 or -ENOMEM. */
int string_ids__add(struct string_ids *ids, const char *text, __u32 *id);
void string_ids__release(struct string_ids *ids);

#endif
