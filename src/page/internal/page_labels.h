/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PAGE_LABELS_H
#define ALLOCPROF_PAGE_LABELS_H

#include "page_frames.h"

struct profile;
struct stack_view;

/* A frame for each label of @view (with_places), whose strings are @profile's and @view's. To be freed;
 * NULL on ENOMEM. */
struct page_frame *page_labels__new(const struct profile *profile, const struct stack_view *view);

#endif
