// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "stack_view.h"

/* The line part of @label: the view without lines has only the function's name. */
static const char *line_of(const struct stack_label *label, const struct diff_name *name)
{
	size_t n = strlen(name->function);

	if (!label->function || strncmp(label->text, name->function, n) != 0 ||
	    strncmp(label->text + n, " (", 2) != 0)
		return NULL;
	return label->text + n + 1;
}

static void add_line(struct diff_frame_lines *lines, const char *text)
{
	for (size_t i = 0; i < lines->n; i++)
		if (!strcmp(lines->texts[i], text))
			return;
	if (lines->n < DIFF_LINES_MOST)
		lines->texts[lines->n++] = text;
	else
		lines->has_more = true;
}

int diff_lines__of(const struct diff_output *output, const struct diff_entry *entry,
		   const struct diff_mark *marks, size_t n, struct diff_frame_lines **lines)
{
	enum diff_side side = entry->stacks[DIFF_AFTER] ? DIFF_AFTER : DIFF_BEFORE;
	const struct profile *profile = output->profiles[side];
	const struct stack_view *view = output->lines[side];
	struct diff_frame_lines *made;

	*lines = NULL;
	if (!view)
		return 0;
	made = calloc(n + 1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++) {
		const __u32 *labels;
		size_t n_labels;

		if (output->diff->count_stacks[side][i] != entry->stacks[side])
			continue;
		labels = stack_view__frames(view, profile->counts[i].stack, &n_labels);
		/* The first mark is the allocator's function. */
		for (size_t j = 0; j < n_labels && j + 1 < n; j++) {
			const char *text = line_of(&view->labels[labels[j]], marks[j + 1].name);

			if (text)
				add_line(&made[j + 1], text);
		}
	}
	*lines = made;
	return 0;
}

void diff_frame_lines__print(const struct diff_frame_lines *lines, const struct terminal *terminal)
{
	for (size_t i = 0; i < lines->n; i++) {
		char text[256];
		size_t size = strlen(lines->texts[i] + 1);

		/* Without the surrounding parentheses. */
		snprintf(text, sizeof(text), "%.*s", (int)(size ? size - 1 : 0),
			 lines->texts[i] + 1);
		fputs(i ? ", " : " (", terminal->to);
		terminal__print(terminal, text, 0);
	}
	if (lines->n)
		fputs(lines->has_more ? ", ...)" : ")", terminal->to);
}
