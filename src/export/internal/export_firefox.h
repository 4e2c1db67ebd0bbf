/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a file of the Firefox Profiler; for export_firefox*.c only. */
#ifndef ALLOCPROF_EXPORT_FIREFOX_H
#define ALLOCPROF_EXPORT_FIREFOX_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "export_internal.h"

/* Stands for no stack, and for no number. */
#define FIREFOX_NONE UINT32_MAX

/* A sample, as it is sorted. */
struct firefox_sample {
	const __u32 *locations; /* locations, innermost first */
	__u32 n_locations;
	__u32 thread;	/* id of the thread */
	__u32 at;	/* count's id - 1 */
	__u32 function; /* enum ap_function */
};

/* The samples of one thread, sorted by their stacks from the outermost frame. */
struct firefox_thread {
	const struct firefox_sample *samples;
	size_t n;
};

/* A frame of the stack that was walked last, and the number of the stack that ends there. */
struct firefox_step {
	__u32 frame, stack;
};

/* Numbers of the things that a thread uses, in the order of their first use. */
struct firefox_numbers {
	__u32 *of;   /* numbers by id, or FIREFOX_NONE */
	__u32 *used; /* ids by number */
	size_t n;
};

/*
 * The writer's state. Frames have ids: the id of a location of the view is its index; that of a
 * function of the allocator, which is the innermost frame of each stack, is first_function plus
 * its number; no_frame stands for a stack without frames. The first error is kept in err, after
 * which nothing must be written.
 */
struct firefox {
	const struct export_input *input;
	FILE *to;
	__u32 first_function, no_frame;
	size_t n_ids, n_funcs_at_most;
	struct firefox_sample *samples;
	size_t n_samples;
	struct firefox_step *steps;
	size_t n_steps, steps_room;
	__u32 n_stacks;			       /* number of stacks of the thread so far */
	struct firefox_numbers frames;	       /* numbers by id of frames */
	struct firefox_numbers funcs, modules; /* numbers by label and the other ids; by id - 1 */
	/* Id of each function's first frame, by the function's number. */
	__u32 *frame_of_func;
	struct string_ids strings;
	bool in_table, in_list; /* an element precedes the next one in the table or list */
	int err;
};

/* Begins the list @key of a table; the elements and "]" follow. */
void firefox__list(struct firefox *firefox, const char *key);
void firefox__number(struct firefox *firefox, __s64 number);
void firefox__null(struct firefox *firefox);
/* Prints the list @key, with @n times @value. */
void firefox__same(struct firefox *firefox, const char *key, size_t n, const char *value);

/*
 * Calls @visit, which may be NULL, for each part of the sample's stack that no earlier sample of
 * the walk has: each is a new stack with the next number. Returns the number of the whole stack.
 */
__u32 firefox__walk(struct firefox *firefox, const struct firefox_sample *sample,
		    void (*visit)(struct firefox *firefox, __u32 frame, __u32 prefix));
/* Walks all samples from the first one on. n_stacks is their number of stacks afterwards. */
void firefox__walk_all(struct firefox *firefox, const struct firefox_thread *thread,
		       void (*visit)(struct firefox *firefox, __u32 frame, __u32 prefix));

/* Returns 0 or -ENOMEM; the caller releases it in either case. */
int firefox__init_tables(struct firefox *firefox);
void firefox__release_tables(struct firefox *firefox);
/* Prints a thread with its tables. */
void firefox__print_thread(struct firefox *firefox, const struct firefox_thread *thread);

#endif
