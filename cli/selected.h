/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A data file as the options of a report want it: its stacks as they are printed, and what of it is
 * selected. */
#ifndef ALLOCPROF_SELECTED_H
#define ALLOCPROF_SELECTED_H

#include "filter_options.h"
#include "view_options.h"

struct error;
struct profile;
struct stack_groups;
struct stack_view;

/* Zeroed is empty. */
struct selected {
	struct profile *profile;
	struct stack_view *view;
	struct stack_groups *groups;
	struct filtered filtered;
};

/* Takes an option of VIEW_OPTIONS or FILTER_OPTIONS; as view_choice__parse(). */
error_t selected__parse(struct view_choice *view, struct filter_choice *filter, int key, char *arg,
			struct error *error);
/*
 * Reads @path and applies both choices; -ENODATA also where the file does not know of @cost. 0 or a
 * negative errno with @error set. To be released either way.
 */
int selected__open(struct selected *selected, const char *path, const struct view_choice *view,
		   struct filter_choice *filter, enum cost cost, struct error *error);
/* The second half of it: with the profile in @selected. */
int selected__choose(struct selected *selected, const struct view_choice *view,
		     struct filter_choice *filter, enum cost cost, struct error *error);
void selected__release(struct selected *selected);

#endif
