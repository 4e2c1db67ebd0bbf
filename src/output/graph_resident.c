// SPDX-License-Identifier: GPL-3.0-or-later
/* Draws the resident memory, and what it consisted of at moments (record --resident). */
#include "graph_internal.h"

#include <math.h>

#include "array.h"
#include "profile.h"

/* Parts are drawn from the bottom on, each with the sum of these kinds. */
static const struct {
	const char *name;
	unsigned int colour, kinds; /* a bit for each kind */
} parts[GRAPH_PARTS] = {
	{ "live blocks", 0x4477aa, 1U << RSS_BLOCKS },
	{ "the rest of their pages: headers, rounding, freed blocks", 0xee6677, 1U << RSS_SLACK },
	{ "pages of the allocator without a live block", 0xccbb44, 1U << RSS_FREE },
	{ "the allocator's pages from before the recording", 0xaa7744, 1U << RSS_BEFORE },
	{ "other anonymous mappings", 0x66ccee, 1U << RSS_MAPPINGS },
	{ "stacks of threads", 0x228833, 1U << RSS_STACKS },
	{ "of forked processes, without a live block of their own", 0xaa3377, 1U << RSS_INHERITED },
	{ "data, files, and what is shared", 0xbbbbbb,
	  1U << RSS_DATA | 1U << RSS_FILES | 1U << RSS_SHARED | 1U << RSS_OWN | 1U << RSS_CHANGED },
};

#define MOST_BAR_WIDTH	12
#define LEAST_BAR_WIDTH 2

static __u64 part_of(const struct profile_rss_sample *sample, size_t part)
{
	__u64 sum = 0;

	for (int kind = 0; kind < RSS_KINDS; kind++)
		if (parts[part].kinds >> kind & 1)
			sum = profile__add_up(sum, sample->bytes[kind]);
	return sum;
}

const struct profile_rss_sample *graph__highest_rss(const struct graph *graph)
{
	const struct profile_rss_sample *highest = NULL;

	for (size_t i = 0; i < graph->n_rss_samples; i++)
		if (!highest || profile_rss_sample__sum(&graph->rss_samples[i]) >
					profile_rss_sample__sum(highest))
			highest = &graph->rss_samples[i];
	return highest;
}

void graph_panel__rss(const struct ink *ink, const struct graph_panel *panel,
		      const struct graph *graph)
{
	ink->cairo->new_path(ink->cr);
	for (size_t i = 0; i < graph->n_samples; i++)
		ink->cairo->line_to(ink->cr, graph_panel__x(panel, graph->samples[i].time_ns),
				    graph_panel__y(panel, graph->samples[i].rss_bytes));
	graph_panel__dash(ink);
}

void graph_panel__parts(const struct ink *ink, const struct graph_panel *panel,
			const struct graph *graph)
{
	double width = fmin(MOST_BAR_WIDTH, panel->width / (2 * graph->n_rss_samples + 1));

	width = fmax(LEAST_BAR_WIDTH, width);
	for (size_t i = 0; i < graph->n_rss_samples; i++) {
		const struct profile_rss_sample *sample = &graph->rss_samples[i];
		double x = graph_panel__x(panel, sample->time_ns) - width / 2, below = 0;

		x = fmax(panel->left, fmin(x, panel->left + panel->width - width));
		for (size_t part = 0; part < GRAPH_PARTS; part++) {
			double above = below + part_of(sample, part);
			double top = graph_panel__y(panel, above);

			ink__set(ink, parts[part].colour);
			ink->cairo->rectangle(ink->cr, x, top, width,
					      graph_panel__y(panel, below) - top);
			ink->cairo->fill(ink->cr);
			below = above;
		}
	}
}

bool graph_part__text(const struct graph *graph, size_t part, struct graph_part *out)
{
	const struct profile_rss_sample *highest = graph__highest_rss(graph);
	bool has_any = false;

	if (!highest)
		return false;
	*out = (struct graph_part){
		.name = parts[part].name,
		.colour = parts[part].colour,
		.peak_bytes = part_of(highest, part),
		.end_bytes = part_of(&graph->rss_samples[graph->n_rss_samples - 1], part),
	};
	for (size_t i = 0; i < graph->n_rss_samples; i++)
		has_any |= part_of(&graph->rss_samples[i], part) > 0;
	return has_any;
}
