// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "filter.h"
#include "graph_data.h"
#include "graph_draw.h"
#include "graph_json.h"
#include "graph_label.h"
#include "number.h"
#include "profile.h"
#include "recording_text.h"

#define MAX_NOTES 8

/* Prints how many blocks the filters selected, or "" if all. */
static void print_selection(const struct filtered *filtered, char *text, size_t size)
{
	*text = '\0';
	if (filtered->total.allocations != filtered->whole.allocations)
		snprintf(text, size, "%s of %s blocks selected",
			 number__count(filtered->total.allocations).text,
			 number__count(filtered->whole.allocations).text);
}

/* Splits @lines into @notes. */
static size_t split_lines(char *lines, const char **notes, size_t max)
{
	size_t n = 0;

	for (char *line = strtok_r(lines, "\n", &lines); line && n < max;
	     line = strtok_r(NULL, "\n", &lines))
		notes[n++] = line;
	return n;
}

static void print_unsure(const struct filtered *filtered, char *text, size_t size)
{
	*text = '\0';
	if (filtered->total.unsure)
		snprintf(text, size, "%s more blocks may belong here: times are known to %s",
			 number__count(filtered->total.unsure).text,
			 number__time(filtered->epoch_ns).text);
}

int graph_output__write(const struct graph_output *output, FILE *to)
{
	const struct profile *profile = output->profile;
	_cleanup_(free_ptr) char *title = recording_text__title(profile);
	_cleanup_(free_ptr) char *lines = NULL;
	_cleanup_(free_ptr) char *sampled = completeness__sampled(profile);
	struct graph_label *labels = NULL;
	const char *notes[MAX_NOTES];
	char selection[128], unsure[128];
	struct graph_words words = {
		.title = title,
		.peak_bytes = output->filtered->peak_bytes,
		.start_time = profile__meta(profile, "start_time"),
		.notes = notes,
	};
	unsigned int flags = COMPLETENESS_BRIEF | COMPLETENESS_TIMES |
			     (output->strict ? COMPLETENESS_STRICT : 0);
	int err;

	err = title ? completeness__lines(profile, flags, &lines) : -ENOMEM;
	if (!err)
		err = graph_label__new(output->groups, output->graph, &labels);
	if (err)
		return err;
	words.labels = labels;
	print_selection(output->filtered, selection, sizeof(selection));
	words.selection = *selection ? selection : NULL;
	words.n_notes = split_lines(lines, notes, MAX_NOTES - 2);
	if (sampled)
		notes[words.n_notes++] = sampled;
	print_unsure(output->filtered, unsure, sizeof(unsure));
	if (*unsure)
		notes[words.n_notes++] = unsure;
	err = output->json ? graph_json__write(output->graph, &words, to)
			   : graph__draw(output->cairo, output->graph, &words, output->format, to);
	graph_label__free(labels, output->graph->n_series);
	return err;
}
