// SPDX-License-Identifier: GPL-3.0-or-later
/* The text and source lines of each frame of a page. */
#include "page_labels.h"

#include <stdlib.h>

#include "profile.h"
#include "stack_view.h"

static void add_line(struct page_frame *frame, const char *file, __u32 line)
{
	if (!frame->file)
		frame->file = file;
	if (frame->file != file || !line)
		return;
	if (!frame->line || line < frame->line)
		frame->line = line;
	if (line > frame->last_line)
		frame->last_line = line;
}

static void add_label_lines(const struct profile *profile, const struct stack_view *view,
			    struct page_frame *frames)
{
	for (size_t i = 0; i < view->n_places; i++) {
		const struct stack_place *place = &view->places[i];
		const struct profile_line *line;

		if (place->line == STACK_NO_LINE)
			continue;
		line = &profile->frames[place->frame - 1].lines[place->line];
		if (line->file)
			add_line(&frames[place->label], profile->files[line->file - 1].path,
				 line->line);
	}
}

struct page_frame *page_labels__new(const struct profile *profile, const struct stack_view *view)
{
	struct page_frame *frames = calloc(view->n_labels + 1, sizeof(*frames));

	if (!frames)
		return NULL;
	for (size_t i = 0; i < view->n_labels; i++) {
		const struct stack_label *label = &view->labels[i];
		struct page_frame *frame = &frames[i];

		frame->name = label->text;
		frame->inlined = label->inlined;
		if (label->module)
			frame->module = profile->modules[label->module - 1].path;
		frame->kind = page_kind__of(label->text, frame->module);
		/* Such as the inner functions of the C++ library. */
		if (label->of_library && frame->kind == PAGE_KIND_OWN)
			frame->kind = PAGE_KIND_RUNTIME;
	}
	add_label_lines(profile, view, frames);
	return frames;
}
