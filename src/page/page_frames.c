// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_frames.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "page_data.h"
#include "path.h"
#include "profile.h"
#include "stack_view.h"

static const char *base_name(const struct page_frame *frame)
{
	return frame->module ? path__name(frame->module) : "";
}

static bool match_frame(const void *owner, __u32 id, const void *key)
{
	const struct page_frame *frame = &((const struct page_frames *)owner)->frames[id - 1];
	const struct page_frame *wanted = key;

	return frame->kind == wanted->kind && frame->inlined == wanted->inlined &&
	       !strcmp(frame->name, wanted->name) && !strcmp(base_name(frame), base_name(wanted));
}

static void add_lines(struct page_frame *to, const struct page_frame *more)
{
	if (!to->file) {
		to->file = more->file;
		to->line = more->line;
		to->last_line = more->last_line;
	} else if (more->line && more->file && !strcmp(to->file, more->file)) {
		if (!to->line || more->line < to->line)
			to->line = more->line;
		if (more->last_line > to->last_line)
			to->last_line = more->last_line;
	}
}

int page_frames__add(struct page_frames *frames, const struct page_frame *frame, __u32 *at)
{
	__u64 hash;
	__u32 found;

	if (!frames->n)
		frames->seed = hash_seed();
	hash = hash_mix(hash_string(hash_string(frames->seed, frame->name), base_name(frame)),
			frame->kind << 1 | frame->inlined);
	found = hash_table__find(&frames->index, hash, match_frame, frames, frame);
	if (found) {
		add_lines(&frames->frames[found - 1], frame);
		*at = found - 1;
		return 0;
	}
	if (array__reserve(&frames->frames, &frames->room, frames->n + 1, sizeof(*frame)) ||
	    hash_table__insert(&frames->index, hash, frames->n + 1))
		return -ENOMEM;
	*at = frames->n;
	frames->frames[frames->n++] = *frame;
	return 0;
}

/* Writes columns of the table one after the other, so that only one is in memory. */
enum column {
	COLUMN_NAME,
	COLUMN_MODULE,
	COLUMN_FILE,
	COLUMN_LINE,
	COLUMN_LAST_LINE,
	COLUMN_KIND,
	COLUMN_INLINED,
	COLUMNS,
};

static const char *const columns[COLUMNS] = {
	[COLUMN_NAME] = "frames.name",		 [COLUMN_MODULE] = "frames.module",
	[COLUMN_FILE] = "frames.file",		 [COLUMN_LINE] = "frames.line",
	[COLUMN_LAST_LINE] = "frames.last_line", [COLUMN_KIND] = "frames.kind",
	[COLUMN_INLINED] = "frames.inlined",
};

static int write_texts(const struct page_frames *frames, enum column column, FILE *to)
{
	_cleanup_(free_ptr) const char **texts = calloc(frames->n + 1, sizeof(*texts));

	if (!texts)
		return -ENOMEM;
	for (size_t i = 0; i < frames->n; i++) {
		const struct page_frame *frame = &frames->frames[i];
		const char *text = column == COLUMN_NAME     ? frame->name
				   : column == COLUMN_MODULE ? frame->module
							     : frame->file;

		texts[i] = text ? text : "";
	}
	return page_data__strings(columns[column], texts, frames->n, to);
}

static int write_numbers(const struct page_frames *frames, enum column column, FILE *to)
{
	_cleanup_(free_ptr) __u32 *numbers = calloc(frames->n + 1, sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < frames->n; i++) {
		const struct page_frame *frame = &frames->frames[i];

		numbers[i] = column == COLUMN_LINE	  ? frame->line
			     : column == COLUMN_LAST_LINE ? frame->last_line
			     : column == COLUMN_KIND	  ? frame->kind
							  : frame->inlined;
	}
	return page_data__u32(columns[column], numbers, frames->n, to);
}

int page_frames__write(const struct page_frames *frames, FILE *to)
{
	int err = 0;

	for (int i = 0; i < COLUMNS && !err; i++)
		err = i <= COLUMN_FILE ? write_texts(frames, i, to) : write_numbers(frames, i, to);
	return err;
}

void page_frames__release(struct page_frames *frames)
{
	free(frames->frames);
	hash_table__release(&frames->index);
}

/* Makes the text and source lines of each frame of a page. */

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
	for (size_t i = 0; i < view->n_locations; i++) {
		const struct stack_location *location = &view->locations[i];
		const struct profile_line *line;

		if (location->line == STACK_NO_LINE)
			continue;
		line = &profile->frames[location->frame - 1].lines[location->line];
		if (line->file)
			add_line(&frames[location->label], profile->files[line->file - 1].path,
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
		frame->kind = label->kind;
		if (label->module)
			frame->module = profile->modules[label->module - 1].path;
	}
	add_label_lines(profile, view, frames);
	return frames;
}
