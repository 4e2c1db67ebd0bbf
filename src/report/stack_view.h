/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks as people want to see them: what every report prints for the frames of a profile. */
#ifndef ALLOCPROF_STACK_VIEW_H
#define ALLOCPROF_STACK_VIEW_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct profile;
struct wrappers;

enum stack_names {
	STACK_NAMES_SIMPLE, /* short for people */
	STACK_NAMES_FULL,   /* with parameters and all template arguments */
	STACK_NAMES_LINKED, /* as the linker knows them */
};

/* Zeroed is what is printed where nobody asks for anything else, less the wrappers. */
struct stack_view_options {
	enum stack_names names;
	bool addresses; /* "module+0xoffset" of each frame, and no names */
	bool no_inline; /* only the functions that have the code */
	bool lines;	/* also the line of the source */
	/* The innermost frames that are among them are left out, but for one where there is nothing
	 * else, and of a library's in a row all but the outermost. NULL: nothing is known of any. Used by
	 * stack_view__new() only. */
	const struct wrappers *wrappers;
	bool all_frames; /* are printed nevertheless */
};

/* What is printed for one frame, or for one function that was inlined into it. */
struct stack_label {
	/* "name", "name (file.c:12)" with lines, "[libfoo.so.1+0x1234]" without a name, "[unknown]"
	 * without a file. As the profile has it, not safe for terminals or folded stacks. Owned. */
	char *text;
	__u32 module;	/* id; 0: unknown */
	__u32 function; /* id of the first that looks so; 0: without a name */
	bool inlined;
	bool of_library; /* a wrapper, or a library's own function */
};

/* No two labels are alike in all but the function. Read freely. */
struct stack_view {
	struct stack_label *labels;
	size_t n_labels;
	__u32 *frames;	/* indexes into labels */
	size_t *starts; /* by stack id - 1: of its frames; one more ends the last */
};

/* 0 or -ENOMEM. @profile's stacks as they are now. */
int stack_view__new(const struct profile *profile, const struct stack_view_options *options,
		    struct stack_view **out);
void stack_view__free(struct stack_view *view);

/* What is printed for the stack of this id, innermost first: indexes into labels. */
const __u32 *stack_view__frames(const struct stack_view *view, __u32 stack, size_t *n_frames);

#endif
