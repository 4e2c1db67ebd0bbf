/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns stacks into lists of printable labels, for all reports. */
#ifndef ALLOCPROF_STACK_VIEW_H
#define ALLOCPROF_STACK_VIEW_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame_kind.h"

struct profile;
struct wrappers;

/* Whether stacks begin with the type of the blocks that they allocate. */
enum stack_types {
	STACK_TYPES_NONE,
	STACK_TYPES_OUTERMOST, /* it is the outermost frame */
	STACK_TYPES_ONLY,      /* it is the only one */
};

enum stack_names {
	STACK_NAMES_SIMPLE, /* names without parameters and default arguments */
	STACK_NAMES_FULL,   /* names with parameters and all template arguments */
	STACK_NAMES_LINKED, /* mangled names, as linked */
};

/* Options of a view. Zeroed they are the default, but without wrappers. */
struct stack_view_options {
	enum stack_names names;
	bool addresses; /* "module+0xoffset" in place of names */
	bool no_inline; /* omit inlined functions */
	bool lines;	/* add source lines */
	/*
	 * Wrappers: innermost frames that are wrappers are omitted, unless nothing else is left,
	 * and consecutive frames of a library's internal functions are reduced to the outermost
	 * one. NULL: no wrappers are known. Used only by stack_view__new().
	 */
	const struct wrappers *wrappers;
	bool all_frames;     /* print wrappers, too */
	bool with_locations; /* fill stack_view.locations; a type has that with index 0 */
	enum stack_types types;
};

/* The text for a frame, or for a function inlined into it. */
struct stack_label {
	/* "name", "name (file.c:12)" with lines, "[libfoo.so.1+0x1234]" without a name, or
	 * "[unknown]" without a file. It is not escaped, so it is unsafe for terminals and folded
	 * stacks. Owned. */
	char *text;
	__u32 module;	/* id of the module; 0: unknown */
	__u32 function; /* id of the first function with this text; 0: no name */
	bool inlined;
	/* Functions of other kinds have labels of their own: each frame has a source file, which
	 * decides about the kind. */
	bool has_kind;
	enum frame_kind kind;
};

/* The line of a location that has no name. */
#define STACK_NO_LINE UINT32_MAX

/* A line of a frame: what a label was made from. */
struct stack_location {
	__u32 frame; /* id of the frame */
	__u32 line;  /* index into its lines, or STACK_NO_LINE */
	__u32 label; /* index of the label */
};

/* The type of blocks. */
struct stack_type {
	char *name; /* "[in FUNCTION]" if it is not known; owned */
	bool is_known;
};

/* The view. Labels differ in more than the function. Fields may be read freely. */
struct stack_view {
	struct stack_label *labels;
	size_t n_labels;
	__u32 *frames;	/* indexes into labels */
	size_t *starts; /* by stack's id - 1: index of its first frame; one more ends the last */
	/* Only with_locations: locations by frame id and line, so that a frame's locations are
	 * neighbours. */
	struct stack_location *locations;
	size_t n_locations;
	__u32 *frame_locations; /* parallel to @frames: indexes of locations */
	/* The types of blocks; and by stack's id - 1, the index of that of what the stack allocates. */
	struct stack_type *type_names;
	size_t n_type_names;
	__u32 *types;
	enum stack_types shown_types;
	__u32 *innermost; /* by stack's id - 1: label of its innermost frame, whatever is shown, + 1; 0: it has none */
};

/* Makes a view that shows @profile's stacks as they are now. Returns 0 or -ENOMEM. */
int stack_view__new(const struct profile *profile, const struct stack_view_options *options,
		    struct stack_view **out);
void stack_view__free(struct stack_view *view);

/* Returns the type of the blocks that stack @stack allocates; NULL: it is not known. */
const char *stack_view__type(const struct stack_view *view, __u32 stack);
/* Returns whether the type of any stack's blocks is known. */
bool stack_view__knows_types(const struct stack_view *view);
/* Returns the labels of stack @stack as indexes, innermost first. */
const __u32 *stack_view__frames(const struct stack_view *view, __u32 stack, size_t *n_frames);
/* Returns the same frames, as indexes into the locations of a view with_locations. */
const __u32 *stack_view__locations(const struct stack_view *view, __u32 stack, size_t *n_frames);

/* Returns @name without V8's mark, which the caller frees; NULL if it has no mark, or there is no
 * memory. V8 puts a mark in front of a function's name that tells which of its compilers made the
 * code: one function is "JS:~f", "JS:^f", "JS:+f" and "JS:*f" by turns
 * (v8/src/objects/code-kind.cc, CodeKindToMarker()). */
char *js_tier__remove(const char *name);

#endif
